"""People of an issuer: by its tokens, and by a login at the page; against one in a process of its own, by TLS."""

import asyncio
import base64
import json
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from fastapi.testclient import TestClient

from controller.northbound.access import COOKIE, AccessRules
from controller.northbound.api import api
from controller.northbound.known import SESSION_S, IssuerTokens, Sessions
from controller.northbound.page import oidc_login
from controller.northbound.tests.site import MANY, NIGHT, dependencies_of
from controller.security import issuer as issuers
from controller.security import pki_files
from controller.security.issuer import AGAIN_S, FRESH_S, KEPT_S, Issuer
from controller.security.oidc_settings import OidcSettings
from controller.security.tokens import Principal, Role, Tokens
from controller.tests.fakes import FakeSite
from controller.tests.issuer import AUDIENCE, CLIENT, SECRET, serving_issuer
from mininet_tests.testing.networks import chile_illinois
from topology.certificates import REST_URI, Kind

GROUPS = {"lsst": Role.RESERVE, "operators": Role.OPERATE, "public": Role.READ}
CERTIFIED = Principal("certificate:bob", Role.OPERATE, frozenset({"lsst"}))


class Seconds:
    """Time that a test lets pass, beside what passes by itself."""

    def __init__(self):
        self.more_s = 0.0

    def __call__(self):
        """Return it."""
        return time.monotonic() + self.more_s


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An authority, and the issuer's certificate."""
    folder = tmp_path_factory.mktemp("pki")
    pki_files.init(folder, "example", pki_files.now(), 10)
    made = pki_files.make(folder, Kind.REST, ("127.0.0.1", REST_URI), pki_files.now(), 5)
    return made.certificate, made.key, folder / "ca.pem"


@pytest.fixture(scope="module")
def process(files):
    """The issuer's process."""
    with serving_issuer(*files) as process:
        yield process


@pytest.fixture
def there(process):
    """The issuer, as if it had just started."""
    process.begins_anew()
    return process


@pytest.fixture
def elapsed():
    """The time by which keys grow old."""
    return Seconds()


@pytest.fixture
def settings(there, tmp_path):
    """How a controller is told of it."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    return OidcSettings(there.issuer, AUDIENCE, GROUPS, client=CLIENT, secret=secret, authority=there.authority)


@pytest.fixture
def client(settings, elapsed):
    """A stranger's client of a controller that takes its tokens."""
    return client_of(settings, elapsed)


def client_of(settings, elapsed=time.monotonic, **more):
    issuer = IssuerTokens(Issuer(settings, elapsed))
    rules = AccessRules(lambda: Tokens(()), lambda: datetime.now(UTC), issuer=issuer, **more)
    app = api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules)
    return TestClient(app, client=("192.0.2.1", 5000), base_url="http://testserver", follow_redirects=False)


def asked(client, token, path="/v1/whoami"):
    return client.get(path, headers={"Authorization": f"Bearer {token}"})


def test_a_token_says_who_one_is_and_its_groups_what_one_may(there, client):
    said = asked(client, there.token()).json()
    assert (said["name"], said["role"], said["groups"]) == (f"oidc:{there.issuer}#ana-4711", "reserve", ["lsst"])
    made = client.post(
        MANY, json=NIGHT | {"owner": "group:lsst"}, headers={"Authorization": f"Bearer {there.token()}"}
    ).json()
    assert (made["owner"], made["creator"]) == ("group:lsst", f"oidc:{there.issuer}#ana-4711")
    assert asked(client, there.token(groups=["public", "operators"])).json()["role"] == "operate"
    assert asked(client, there.token(groups="public tea")).json()["groups"] == ["public"]
    assert there.asked("/keys") == 1  # they are kept


def test_a_group_whose_name_has_spaces_owns_what_is_made_for_it(there, settings):
    client = client_of(replace(settings, groups={"Domain Users": Role.RESERVE}))
    shown = {"Authorization": f"Bearer {there.token(groups=['Domain Users'])}"}
    made = client.post(MANY, json=NIGHT | {"owner": "group:Domain Users"}, headers=shown)
    assert made.json()["owner"] == "group:Domain Users", made.text
    for query in ({"owner": "group:Domain Users"}, {"mine": True}):
        (found,) = client.get(MANY, params=query, headers=shown).json()["reservations"]
        assert found["id"] == made.json()["id"]


def test_groups_may_be_inside_another_claim(there, settings):
    client = client_of(replace(settings, claim="realm_access.roles"))
    assert asked(client, there.token(realm_access={"roles": ["operators"]})).json()["role"] == "operate"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "somebody else"},
        {"aud": None},
        {"iss": "https://127.0.0.1:1"},
        {"exp": None},
        {"exp": int(time.time()) - 3600},
        {"nbf": int(time.time()) + 3600},
        {"iat": int(time.time()) + 3600},
        {"sub": None},
        {"sub": "a" * 256},
        {"sub": "ana\n"},
        {"groups": ["tea"]},
        {"groups": None},
        {"groups": 7},
    ],
    ids=[
        "another's",
        "nobody's",
        "another issuer",
        "without an end",
        "over",
        "not yet",
        "from the future",
        "without a subject",
        "a long subject",
        "a subject of two lines",
        "another group",
        "no groups",
        "groups that are none",
    ],
)
def test_what_is_not_for_us_now_by_somebody_of_a_known_group_is_nobody_s(there, client, claims):
    answer = asked(client, there.token(**claims))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer error="invalid_token"')


def test_clocks_may_differ_by_half_a_minute(there, client):
    now_s = int(time.time())
    assert asked(client, there.token(exp=now_s - issuers.SKEW_S + 10)).status_code == 200
    assert asked(client, there.token(nbf=now_s + issuers.SKEW_S - 10)).status_code == 200
    assert asked(client, there.token(exp=now_s - issuers.SKEW_S - 10)).status_code == 401


def test_what_anybody_can_sign_is_nobody_s(there, client):
    good = there.token()
    name = jwt.get_unverified_header(good)["kid"]
    claims = jwt.decode(good, options={"verify_signature": False})
    head, body, signature = good.split(".")
    public = json.dumps({"kty": "EC"})
    forged = [
        jwt.encode(claims, None, "none", headers={"kid": name}),
        jwt.encode(claims, public * 9, "HS256", headers={"kid": name}),  # with what is public as the secret
        f"{head}.{body}.{'A' * len(signature)}",
        f"{head}.{_altered(body)}.{signature}",
        f"{head}.{body}.",
        "ey..",
        "eyJ.eyJ.eyJ",
    ]
    assert {asked(client, token).status_code for token in forged} == {401}
    assert asked(client, good).status_code == 200


def _altered(body):
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    claims["groups"] = ["operators"]
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


RSA_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


def test_a_key_that_names_no_algorithm_has_signed_by_any_of_its_type_that_is_taken(there, client):
    there.rotate(kind="RSA", algorithm=None)
    for algorithm in RSA_ALGORITHMS:
        assert asked(client, there.token(algorithm)).status_code == 200, algorithm
    token = there.token("RS256")
    name = jwt.get_unverified_header(token)["kid"]
    claims = jwt.decode(token, options={"verify_signature": False})
    for algorithm, key in (("HS256", "public" * 9), ("none", None)):
        assert asked(client, jwt.encode(claims, key, algorithm, headers={"kid": name})).status_code == 401


def test_a_key_that_names_its_algorithm_has_signed_by_that_alone(there, client):
    there.rotate(kind="RSA", algorithm="PS256")
    assert {name: asked(client, there.token(name)).status_code for name in RSA_ALGORITHMS} == {
        name: 200 if name == "PS256" else 401 for name in RSA_ALGORITHMS
    }


def test_another_key_is_taken_once_it_is_used_and_the_old_one_no_more(there, client, elapsed):
    old = there.token()
    assert asked(client, old).status_code == 200
    there.rotate()
    new = there.token()
    elapsed.more_s += AGAIN_S + 1
    assert asked(client, new).status_code == 200
    assert asked(client, old).status_code == 401


def test_keys_are_looked_at_again_though_nothing_new_has_come(there, client, elapsed):
    old = there.token()
    asked(client, old)
    there.rotate()
    elapsed.more_s += FRESH_S + 1
    assert asked(client, old).status_code == 200  # nobody waits for that
    for _ in range(100):
        if asked(client, old).status_code == 401:
            break
        time.sleep(0.05)
    assert asked(client, old).status_code == 401


def test_tokens_with_made_up_keys_do_not_make_us_ask_the_issuer_again_and_again(there, client):
    claims = jwt.decode(there.token(), options={"verify_signature": False})
    for number in range(20):
        made_up = jwt.encode(claims, "x" * 32, "HS256", headers={"kid": f"made up {number}"})
        assert asked(client, made_up).status_code == 401
    assert there.asked("/keys") == 1


def test_an_issuer_that_is_down_locks_out_nobody_whose_key_is_known_until_a_day_has_passed(files, settings, elapsed):
    with serving_issuer(*files) as mortal:
        client = client_of(replace(settings, issuer=mortal.issuer), elapsed)
        token = mortal.token(exp=int(time.time()) + 10**6)
        assert asked(client, token).status_code == 200
    elapsed.more_s += FRESH_S + 1
    assert asked(client, token).status_code == 200
    elapsed.more_s += KEPT_S
    answer = asked(client, token)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/issuer-silent")
    assert answer.headers["retry-after"] == "10"


def test_an_issuer_that_calls_itself_otherwise_is_not_believed(there, settings):
    token = there.token()
    other = replace(settings, issuer=there.issuer + "/")  # answers by the same document
    assert asked(client_of(other), token).status_code == 503


def test_an_issuer_whose_certificate_is_not_trusted_is_not_believed(there, settings):
    assert asked(client_of(replace(settings, authority=None)), there.token()).status_code == 503


def test_a_client_certificate_s_name_is_a_principal_if_it_is_named(settings):
    client = client_of(settings, certificates={"bob": CERTIFIED})
    app = client.app

    def shown(name):
        async def carried(scope, receive, send):
            await app(scope | {"extensions": {"tls": {"client_cert_name": name}}}, receive, send)

        return TestClient(carried, client=("192.0.2.1", 5)).get("/v1/whoami")

    assert shown("bob").json()["name"] == "certificate:bob"
    assert shown("eve").status_code == 401


# The page's login.


def begun(client):
    """Begin a login; return the way to the issuer."""
    answer = client.get("/login/oidc")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def path_of(address):
    parts = urlsplit(address)
    return f"{parts.path}?{parts.query}"


def test_one_logs_in_by_the_issuer_and_out_again(there, client):
    assert 'href="/login/oidc"' in client.get("/login").text
    way = begun(client)
    query = {name: values[0] for name, values in parse_qs(urlsplit(way).query).items()}
    assert (query["code_challenge_method"], query["redirect_uri"]) == ("S256", "http://testserver/login/done")
    back = there.login(way)
    assert back.startswith("http://testserver/login/done?")
    done = client.get(path_of(back))
    assert done.status_code == 200, done.text
    cookies = "\n".join(done.headers.get_list("set-cookie")).lower()
    assert f"{COOKIE}=hs_" in cookies
    assert "httponly" in cookies
    assert "samesite=strict" in cookies
    assert "eyj" not in cookies  # the issuer's token stays here
    page = client.get("/")
    assert page.status_code == 200
    assert f"oidc:{there.issuer}#ana-4711, reserve" in page.text
    session = client.cookies[COOKIE]
    assert client.delete("/session", headers={"Origin": "http://testserver"}).status_code == 204
    client.cookies.set(COOKIE, session)
    assert client.get("/v1/whoami").status_code == 401  # forgotten here, and not only by the browser


def test_a_login_is_good_once_and_only_in_the_browser_that_began_it(there, client, settings):
    back = there.login(begun(client))
    stranger = client_of(settings)
    assert stranger.get(path_of(back)).status_code == 403
    kept = client.cookies["headway-login"]
    assert client.get(path_of(back)).status_code == 200
    client.cookies.set("headway-login", kept, path="/login/done")
    assert client.get(path_of(back)).status_code == 403  # its code was redeemed
    client.cookies.clear()
    begun(client)
    assert client.get("/login/done?state=&code=x").status_code == 403
    state = client.cookies["headway-login"].split(".")[0]
    refused = client.get(f"/login/done?state={state}&error=access_denied%3Cb%3E")
    assert refused.status_code == 403
    assert "access_denied&lt;b&gt;" in refused.text


def test_a_token_of_another_login_is_not_taken(there, client):
    back = there.login(begun(client))
    state, _, verifier = client.cookies["headway-login"].split(".")
    client.cookies.clear()
    client.cookies.set("headway-login", f"{state}.another nonce.{verifier}".replace(" ", "-"))
    assert client.get(path_of(back)).status_code == 403


def test_without_an_issuer_there_is_no_such_login():
    rules = AccessRules(lambda: Tokens(()), lambda: datetime.now(UTC))
    client = TestClient(api(dependencies_of(FakeSite(chile_illinois(), standing=())), rules))
    assert client.get("/login/oidc").status_code == client.get("/login/done").status_code == 404
    assert "/login/oidc" not in client.get("/login").text


def test_a_session_is_over_after_its_time_and_their_number_is_bounded(monkeypatch):
    elapsed = Seconds()
    sessions = Sessions(elapsed)
    name = sessions.begin(CERTIFIED)
    assert sessions.principal(name) == CERTIFIED
    elapsed.more_s += SESSION_S + 1
    assert sessions.principal(name) is None
    monkeypatch.setattr("controller.northbound.known.MOST_SESSIONS", 3)
    names = [sessions.begin(CERTIFIED) for _ in range(5)]
    assert [sessions.principal(name) is not None for name in names] == [False, False, True, True, True]


def test_logins_that_wait_for_the_issuer_keep_nobody_else_waiting(settings, monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr(Issuer, "document", lambda _: answers.wait(30) and {})
    app = client_of(settings, local=Role.READ).app

    async def others_status():
        by = httpx.ASGITransport(app, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=by, base_url="http://testserver") as here:
            logins = [asyncio.create_task(here.get("/login/oidc")) for _ in range(60)]
            try:
                await asyncio.wait(logins, timeout=0.5)
                return (await asyncio.wait_for(here.get("/v1/topology"), 5)).status_code
            finally:
                answers.set()
                await asyncio.gather(*logins)

    assert asyncio.run(others_status()) == 200


def test_a_login_that_has_no_turn_in_time_is_to_be_tried_again_later(settings, monkeypatch):
    monkeypatch.setattr(oidc_login, "AT_ONCE", 0)
    monkeypatch.setattr(oidc_login, "WAIT_S", 0.01)
    answer = client_of(settings).get("/login/oidc")
    assert answer.status_code == 503
    assert "try again later" in answer.text


def test_an_issuer_whose_address_has_a_port_that_is_none_is_silent(settings):
    client = client_of(replace(settings, issuer="https://127.0.0.1:443o"))
    assert asked(client, "eyJ.eyJ.eyJ").status_code == 503
    assert client.get("/login/oidc").status_code == 503
