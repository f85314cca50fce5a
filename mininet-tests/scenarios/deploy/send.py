"""Send through the plan for some seconds; print what the kernel says of the connection, as JSON.

send.py SOURCE ADDRESS NAMESPACE SECONDS: from an address of ours to one that is in a namespace.
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
RECEIVER = f"""
import socket
with socket.create_server(("{ADDRESS}", {PORT}), family=socket.AF_INET6 if ":" in "{ADDRESS}" else socket.AF_INET) as s:
    connection = s.accept()[0]
while connection.recv(65536):
    pass
"""

receiver = subprocess.Popen(["ip", "netns", "exec", NAMESPACE, "python3", "-c", RECEIVER])
for _ in range(100):
    try:
        connection = socket.create_connection((ADDRESS, PORT), timeout=5, source_address=(SOURCE, 0))
        break
    except OSError:
        time.sleep(0.1)
else:
    receiver.kill()
    sys.exit(f"{ADDRESS} is not reached from {SOURCE}")
connection.settimeout(None)


def feed() -> None:
    """Send until the process ends."""
    while True:
        connection.sendall(bytes(65536))


threading.Thread(target=feed, daemon=True).start()
BEGINS_S = 2.0  # a few round trips, and the grant of what others have left


def looked() -> tuple[float, int, str]:
    """Return when, how many bytes have arrived, and what the kernel says."""
    to = f"[{ADDRESS}]" if ":" in ADDRESS else ADDRESS
    shown = subprocess.run(["ss", "-tinH", "dst", to], capture_output=True, text=True, check=True).stdout
    acked = re.search(r"bytes_acked:(\d+)", shown)
    return time.monotonic(), int(acked[1]) if acked else 0, shown


time.sleep(BEGINS_S)
begun_s, before_bytes = looked()[:2]
time.sleep(float(SECONDS) - BEGINS_S)
ended_s, after_bytes, last = looked()
receiver.kill()
words = last.split()
pacing = re.search(r"pacing_rate (\d+)bps", last)
ours = [word for word in words if word.startswith("headway")]
print(
    json.dumps(
        {
            "algorithm": ours[0] if ours else "",
            "pacing_bps": int(pacing[1]) if pacing else 0,
            "acked_bytes": after_bytes,
            "delivered_bps": 8 * (after_bytes - before_bytes) / (ended_s - begun_s),
            "shown": last,
        }
    )
)
