"""Send through the plan for some seconds; print what the kernel says of the connection, as JSON.

send.py SOURCE ADDRESS NAMESPACE SECONDS: from an address of ours to one that is in a namespace.

What lost more than ``LOST`` is sent again, a few times, and the last is printed: nothing is lost by the plan, but by a
switch in user space that waits for a CPU beside other tests (its port has room for some 4 ms), and a connection that
loses a fifth is given back for a while, as it should be.
"""

import json
import re
import socket
import subprocess
import sys
import threading
import time

SOURCE, ADDRESS, NAMESPACE, SECONDS = sys.argv[1:]
PORT = 5001
BEGINS_S = 2.0  # a few round trips, and the grant of what others have left
LOST = 0.05  # over all of it: in no three seconds was it then a fifth, by which an agent judges
REST_S = 12, 24, 48  # before the next: an agent gives back for 10 s, and for twice as long when it happens again
RECEIVER = f"""
import socket
with socket.create_server(("{ADDRESS}", {PORT}), family=socket.AF_INET6 if ":" in "{ADDRESS}" else socket.AF_INET) as s:
    connection = s.accept()[0]
while connection.recv(65536):
    pass
"""


def connected() -> socket.socket:
    """Return a connection to the receiver, which is starting."""
    for _ in range(100):
        try:
            return socket.create_connection((ADDRESS, PORT), timeout=5, source_address=(SOURCE, 0))
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{ADDRESS} is not reached from {SOURCE}")


def feed(connection: socket.socket) -> None:
    """Send until the receiver ends."""
    connection.settimeout(None)
    try:
        while True:
            connection.sendall(bytes(65536))
    except OSError:
        connection.close()


def counted(name: str, shown: str) -> int:
    """Return one of the kernel's counts, 0 if it does not show it."""
    found = re.search(rf"\b{name}:(\d+)", shown)
    return int(found[1]) if found else 0


def looked(port: int) -> tuple[float, str]:
    """Return when, and what the kernel says of the connection from a port."""
    to = f"[{ADDRESS}]" if ":" in ADDRESS else ADDRESS
    only = "sport", "=", f":{port}", "and", "dst", to
    return time.monotonic(), subprocess.run(["ss", "-tinH", *only], capture_output=True, text=True, check=True).stdout


def sent() -> tuple[float, dict[str, object]]:
    """Return which share was sent again, and what is to be printed."""
    receiver = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, "python3", "-c", RECEIVER])
    try:
        connection = connected()
        port = connection.getsockname()[1]
        threading.Thread(target=feed, args=(connection,), daemon=True).start()
        time.sleep(BEGINS_S)
        begun_s, before = looked(port)
        time.sleep(float(SECONDS) - BEGINS_S)
        ended_s, last = looked(port)
    finally:
        receiver.kill()
        receiver.wait()
    pacing = re.search(r"pacing_rate (\d+)bps", last)
    ours = [word for word in last.split() if word.startswith("headway")]
    acked_bytes = counted("bytes_acked", last)
    return counted("bytes_retrans", last) / max(1, counted("bytes_sent", last)), {
        "algorithm": ours[0] if ours else "",
        "pacing_bps": int(pacing[1]) if pacing else 0,
        "acked_bytes": acked_bytes,
        "delivered_bps": 8 * (acked_bytes - counted("bytes_acked", before)) / (ended_s - begun_s),
        "shown": last,
    }


lost, said = sent()
for rest_s in REST_S:
    if lost <= LOST:
        break
    time.sleep(rest_s)
    lost, said = sent()
print(json.dumps(said))
