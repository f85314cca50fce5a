"""The OCI image of the controller, run by ``runc``: read-only, without a capability, as the image's own user."""

import json
import os
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

from mininet_tests.testing.aims import Aim, at_most, equal
from mininet_tests.testing.eventually import eventually

NAME = "headway-controller"
STATE = "/var/lib/headway"
USER = 6653  # contrib/packaging/image.py
UP_WITHIN_S, STOPS_WITHIN_S = 60.0, 10.0  # after ten seconds podman and docker send SIGKILL
HEALTH = """
import urllib.error, urllib.request
try:
    print(urllib.request.urlopen("http://127.0.0.1:8080/healthz").read().decode())
except urllib.error.HTTPError as error:
    print(error.read().decode())
"""


def aims(archive: Path, network: Path, folder: Path) -> dict[str, Aim]:
    """Return what is to be of the image in an archive: it starts, answers, and ends when it is told to.

    Args:
        archive: of OCI.
        network: the file of one.
        folder: for its files.
    """
    layout, bundle, etc, state_dir = (folder / name for name in ("layout", "bundle", "etc", "state"))
    for there in (layout, bundle, etc, state_dir):
        shutil.rmtree(there, ignore_errors=True)
    for there in (layout, etc, state_dir):
        there.mkdir(parents=True)
    os.chown(state_dir, USER, USER)
    shutil.copy(network, etc / "network.yaml")
    (etc / "controller.yaml").write_text(f"network: network.yaml\nstore: sqlite:///{STATE}/headway.db\n")
    subprocess.run(["tar", "-x", "-f", archive, "-C", layout], check=True)
    version = json.loads((layout / "index.json").read_text())["manifests"][0]["annotations"]
    reference = f"{layout}:{version['org.opencontainers.image.ref.name']}"
    subprocess.run(["umoci", "unpack", "--image", reference, bundle], check=True, capture_output=True)
    (bundle / "config.json").write_text(
        json.dumps(_narrow(json.loads((bundle / "config.json").read_text()), etc, state_dir))
    )
    runc = ["runc", "--root", str(folder / "runc")]
    with (folder / "container.log").open("wb") as log:
        container = subprocess.Popen(
            [*runc, "run", "--bundle", str(bundle), NAME], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        health = eventually(partial(_health, runc), within_s=UP_WITHIN_S, what="the container answers")
        state = json.loads(subprocess.run([*runc, "state", NAME], capture_output=True, check=True).stdout)
        status = Path(f"/proc/{state['pid']}/status").read_text()
        began_s = time.monotonic()
        subprocess.run([*runc, "kill", NAME, "TERM"], check=True)
        code = container.wait(UP_WITHIN_S)
        stopped_s = time.monotonic() - began_s
    finally:
        subprocess.run([*runc, "delete", "--force", NAME], check=False, capture_output=True)
    values = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return {
        "image: /healthz answers": equal("hosts_missing" in health, True),
        "image: its user": equal(values["Uid"].split(), [str(USER)] * 4),
        "image: its capabilities": equal(int(values["CapEff"], 16), 0),
        "image: seconds until it has ended after SIGTERM": at_most(round(stopped_s, 1), STOPS_WITHIN_S),
        "image: its exit code": equal(code, 0),
        "image: its database": equal((state_dir / "headway.db").exists(), True),
    }


def _narrow(config: dict[str, Any], etc: Path, state_dir: Path) -> dict[str, Any]:
    """Return a container's configuration as ``podman run --read-only --cap-drop=all`` has it, with its two folders."""
    bundle_state = {"destination": STATE, "type": "bind", "source": str(state_dir), "options": ["bind", "rw"]}
    bound = {"destination": "/etc/headway", "type": "bind", "source": str(etc), "options": ["bind", "ro"]}
    config["process"] |= {"terminal": False, "capabilities": {}, "noNewPrivileges": True}
    config["root"]["readonly"] = True
    config["mounts"] += [bound, bundle_state]
    return config


def _health(runc: list[str]) -> str:
    done = subprocess.run(
        [*runc, "exec", NAME, "python3", "-c", HEALTH],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout if done.returncode == 0 else ""
