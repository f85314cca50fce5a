"""What breaks if a circuit dies at this moment: ``python -m controller.whatif CIRCUIT``, a live site's JSON comes in.

A process of its own: a controller that asks for a forecast has its interpreter, and its lock, for the plan meanwhile.
"""

import json
import sys

from controller.live_site import live_site_of
from controller.whatif.live import forecast


def main() -> None:
    """Write the forecast as JSON."""
    (circuit,) = sys.argv[1:]
    json.dump(forecast(live_site_of(json.load(sys.stdin)), circuit), sys.stdout)


if __name__ == "__main__":
    main()
