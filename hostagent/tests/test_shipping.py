"""What is shipped: the built kernel part, the same from the same source, in the wheel."""

import shutil
import subprocess
import sys
import zipfile

import pytest

from hostagent.kernel.image import CODED_OBJECT_FILE, OBJECT_FILE, object_image
from hostagent.tests.rig import REPOSITORY

BUILT_BY = "14.0.6"  # clang of Debian 12; another one makes another object
SHIPPED = {
    "hostagent/bpf/headway.bpf.o",
    "hostagent/bpf/coded.bpf.o",
    "hostagent/systemd/headway-agent.service",
    "hostagent/systemd/headway-agent.conf",
}


def clang_version():
    if shutil.which("clang") is None or shutil.which("llvm-strip") is None:
        return "none"
    return subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True).stdout.split()[3]


def test_the_kernel_part_counts_the_lease_by_a_clock_that_goes_on_in_sleep():
    bpf_call, ktime_get_boot_ns = b"\x85\0\0\0", 125  # include/uapi/linux/bpf.h
    assert bpf_call + ktime_get_boot_ns.to_bytes(4, "little") in object_image()


@pytest.mark.skipif(clang_version() != BUILT_BY, reason=f"needs clang {BUILT_BY}, llvm and libbpf-dev of Debian 12")
@pytest.mark.parametrize("name", [OBJECT_FILE, CODED_OBJECT_FILE])
def test_the_kernel_part_is_built_the_same_again(tmp_path, name):
    folder = shutil.copytree(REPOSITORY / "hostagent/bpf", tmp_path / "bpf", ignore=shutil.ignore_patterns("*.o"))
    subprocess.run(["make", "-s", "-C", folder], check=True)
    assert (folder / name).read_bytes() == object_image(name)


def test_the_wheel_holds_the_kernel_part_and_the_units(tmp_path):
    source = tmp_path / "source"
    copied = ("apps", "controller", "hostagent", "topology")
    for name in copied:
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert set(archive.namelist()) >= SHIPPED
        assert archive.read("hostagent/bpf/headway.bpf.o") == object_image()
