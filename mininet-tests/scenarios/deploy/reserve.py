"""Make so many reservations, and print their ids: run in the machine by Debian's own Python."""

import json
import sys
import urllib.request
from datetime import UTC, datetime, timedelta

URL = "http://127.0.0.1:8080/v1/reservations"

tomorrow = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
for number in range(int(sys.argv[1])):
    start = tomorrow + timedelta(hours=number)
    wish = {"from": "dl-a", "to": "pt-a", "rate": f"{1 + number % 7} Mbit/s", "start": start.isoformat()}
    body = json.dumps(wish | {"duration_s": 3600 + number, "commit": True}).encode()
    request = urllib.request.Request(URL, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:  # noqa: S310 it is ours
        print(json.load(answer)["id"])
