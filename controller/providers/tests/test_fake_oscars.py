"""That the stand-in has the quirks of OSCARS that our client relies on: a table of rules, asked by plain HTTP."""

import httpx
import pytest

from controller.providers.tests.buying import START_S
from controller.providers.tests.fake_oscars import TOKEN

DAY = 86_400
A, B = "chic-cr6:1/1/c9/1", "nash-cr6:1/1/c17/2"
WAY = ("chic-cr6", "chic-cr6:1/1/b1", "nash-cr6:1/1/b1", "nash-cr6")
WAITING = ("WAITING", "UNDEPLOYED", "SHOULD_BE_UNDEPLOYED")
UP = ("ACTIVE", "DEPLOYED", "SHOULD_BE_DEPLOYED")


class PlainHttp:
    """Asks as anybody would; what is seen of it is compared with the table."""

    def __init__(self, fake, http):
        self.fake, self.http = fake, http

    def vpn(self, name="CXA5", begin=100, end=DAY, mbps=1000, vlan=2, path=WAY, **other):
        """A request of the L2VPN API, its times counted from the start of the test."""
        hops = [{"urn": urn} for urn in path]
        pipe = {"name": "pipe", "a": "chic-cr6", "z": "nash-cr6", "lsps": [{"path": hops, "role": "PRIMARY"}]}
        return {
            "name": name,
            "meta": {"description": "a test"},
            "schedule": {"beginning": START_S + begin, "ending": START_S + end},
            "qos": {"mode": "GUARANTEED", "excessAction": "DROP", "bandwidth": mbps},
            "tech": {"mode": "AUTOMATIC", "flavor": "VPLS", "mtu": 9000, "macsec": False},
            "endpoints": [{"device": p.split(":")[0], "port": p, "vlan": vlan, "tagged": True} for p in (A, B)],
            "bundles": [{**pipe, "protection": "NONE", "constraints": {"include": [], "exclude": []}}],
            **other,
        }

    def new(self, *args, **other):
        """The status of asking for a circuit; "lost" if nobody answers."""
        try:
            return self.http.post("/protected/l2vpn/new", json=self.vpn(*args, **other)).status_code
        except httpx.HTTPError:
            return "lost"

    def why(self, **other):
        """What validation says of it."""
        return self.http.post("/api/l2vpn/validate", json=self.vpn(**other)).json()["message"]

    def at(self, ahead_s):
        """Let the time pass."""
        self.fake.ahead_s = ahead_s
        return self

    def get(self, name="CXA5"):
        """The circuit, or the status of asking for it."""
        answer = self.http.get(f"/api/l2vpn/get/{name}")
        return answer.json() if answer.status_code == 200 else answer.status_code

    def status(self, name="CXA5"):
        """Phase, state, deployment and intent."""
        return tuple(self.get(name)["status"].values())

    def when(self, what, name="CXA5"):
        """Its begin or end, from the start of the test."""
        return round(self.get(name)["schedule"][what] - START_S, 1)

    def release(self, name="CXA5"):
        """The status of giving it back."""
        return self.http.delete(f"/protected/l2vpn/release/{name}").status_code

    def modify(self, what, **body):
        """The answer to a change."""
        return self.http.post(f"/protected/modify/{what}", json={"connectionId": "CXA5", **body})

    def moved(self, end):
        """Whether it says that its end is moved, or the status."""
        answer = self.modify("schedule", type="END", timestamp=START_S + end)
        return answer.json()["success"] if answer.status_code == 200 else answer.status_code

    def fits(self, mbps):
        """Whether a rate finds a way: straight on, round, or none."""
        ends = ["chic-cr6", "nash-cr6"]
        body = {"a": ends[0], "z": ends[1], "azBw": mbps, "zaBw": mbps, "include": ends, "exclude": []}
        interval = {"beginning": START_S + 100, "ending": START_S + DAY}
        found = self.http.post("/api/pce/paths", json={**body, "interval": interval}).json()["fits"]
        return "none" if found is None else "straight" if len(found["azEro"]) == len(WAY) else "round"

    def ping(self, token):
        """The status for who comes with a token."""
        return self.http.get("/protected/ping", headers={"Authorization": f"Bearer {token}"}).status_code

    def free(self, port):
        """What is believed to be free."""
        body = {"beginning": START_S + 100, "ending": START_S + DAY}
        return self.http.post("/api/topo/available", json=body).json()[port]["ingressBandwidth"]

    def refreshing(self):
        """Let the topology be read anew all the time."""
        self.fake.rules.refresh_every_s = self.fake.rules.refresh_s = 300
        return self


RULES = {
    "a token that is not known is 401": (lambda o: o.ping("wrong"), 401),
    "a token without its group is 403": (lambda o: o.ping(o.fake.stranger), 403),
    "a token without groups is 500, as a refusal is": (lambda o: o.ping(o.fake.groupless), 500),
    "what is refused is 500 without a word": (lambda o: o.new(mbps=200_000), 500),
    "validation says one cause ten times": (lambda o: len(o.why(mbps=200_000, path=()).splitlines()), 10),
    "less than 15 minutes is refused": (lambda o: "too short" in o.why(end=100 + 899), True),
    "a VLAN that the port has not is refused": (lambda o: f"{A} : vlan 1 not available" in o.why(vlan=1), True),
    "an unknown port is refused": (
        lambda o: "x:1 not in topology" in o.why(endpoints=[{"device": "x", "port": "x:1", "vlan": 2}] * 2),
        True,
    ),
    "a begin at once moves by half a minute": (lambda o: (o.new(begin=-299), o.when("beginning")), (200, 30)),
    "nobody sees what routers are being told": (
        lambda o: (o.new(), *(o.at(s).status()[1:] for s in (100, 119, 120, DAY, DAY + 19))),
        (200, WAITING, WAITING, UP, UP, UP),
    ),
    "an end is waiting first, and archived after a second": (
        lambda o: (o.new(), o.at(120).status()[0], o.at(DAY + 20).status(), o.at(DAY + 22).status()[:2]),
        (200, "RESERVED", ("RESERVED", *WAITING), ("ARCHIVED", "WAITING")),
    ),
    "an empty path takes nothing of the backbone": (
        lambda o: (o.new(mbps=90_000, path=()), o.free(WAY[1]), o.fits(390_000)),
        (200, 400_000, "straight"),
    ),
    "a path takes what it is told": (
        lambda o: (o.new(mbps=90_000), o.free(WAY[1]), o.fits(390_000), o.fits(900_000)),
        (200, 310_000, "round", "none"),
    ),
    "an end that was never deployed cannot be moved": (lambda o: (o.new(), o.moved(2 * DAY)), (200, 500)),
    "an end at once moves by a minute, and is no whole second": (
        lambda o: (o.new(), o.at(125).get() and o.at(5_000).moved(5_010), o.when("ending")),
        (200, True, 5_060.8),
    ),
    "an end that conflicts is done and called a success": (
        lambda o: (
            o.new(end=5_000) and o.at(125).new("CXA6", begin=6_000, mbps=95_000),
            o.at(200).moved(7_000),
            o.when("ending"),
        ),
        (200, True, 7_000),
    ),
    "a second rate is lost while routers are told of the first": (
        lambda o: (
            o.new() and o.at(125).get() and o.modify("bandwidth", bandwidth=1100).status_code,
            o.at(126).modify("bandwidth", bandwidth=1200).status_code,
            o.at(160).get()["qos"]["bandwidth"],
            o.fake.oscars.rows[0].routers_mbps,
        ),
        (200, 200, 1200, 1100),
    ),
    "the same name twice over the lock is 500 for ever, and the end of all deployments": (
        lambda o: (
            o.new() and o.new("CXA8", vlan=4, begin=900),
            *(o.at(110).new("CXA6", vlan=3, begin=800) for _ in range(2)),
            o.get("CXA6"),
            o.at(2_000).get("CXA6"),
            o.release("CXA6"),
            o.status("CXA8")[1],
        ),
        (200, "lost", "lost", 404, 500, 500, "WAITING"),
    ),
    "a release before a create that waits leaves an orphan": (
        lambda o: (
            o.new() and o.at(110).new("CXA6", vlan=3, begin=800),
            o.release("CXA6"),
            o.at(121).status("CXA6")[0],
        ),
        ("lost", 404, "RESERVED"),
    ),
    "what touches is refused, a second later not": (
        lambda o: (
            o.new(end=5_000, mbps=100_000),
            o.new("CXA6", begin=5_000, mbps=1, vlan=3),
            o.new("CXA7", begin=5_001, mbps=100_000),
        ),
        (200, 500, 200),
    ),
    "a refused commit leaves a hold that hides what is reserved": (
        lambda o: (
            o.new() and o.http.put("/protected/l2vpn/replace", json=o.vpn(mbps=2000, bundles=[])).status_code,
            o.status()[0],
            o.http.get("/protected/held/clear/CXA5") and o.status()[0],
        ),
        (500, "HELD", "RESERVED"),
    ),
    "while the topology is read anew what is asked is done, and the answer 500": (
        lambda o: (o.refreshing().new(), len(o.fake.oscars.rows), o.get()),
        (500, 1, 500),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_stand_in_is_as_unkind_as_the_original(fake, url, rule):
    done, expected = RULES[rule]
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5) as http:
        assert done(PlainHttp(fake, http)) == expected
