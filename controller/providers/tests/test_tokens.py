"""Tokens that are renewed before they end; refusals in one cause for each port."""

import base64

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from controller.providers.errors import ProviderDenied, SecretUnusable
from controller.providers.oscars import OscarsProvider
from controller.providers.oscars_refusals import condensed
from controller.providers.secrets import Secret
from controller.providers.tests.buying import LATER, at_first, of, settings
from controller.providers.tests.faulty import running
from controller.providers.tokens import Login, LoginSettings, ends_s


class Desk:
    """A login that gives tokens for 300 seconds."""

    def __init__(self):
        self.forms, self.closed, self.now_s = [], False, 1_000.0
        self.app = FastAPI()

        @self.app.post("/token")
        async def token(request: Request):
            self.forms.append((await request.body()).decode())
            if self.closed:
                return JSONResponse({"error": "invalid_grant", "error_description": "Invalid user credentials"}, 401)
            return {"access_token": f"token-{len(self.forms)}", "expires_in": 300}


@pytest.fixture
def desk():
    desk = Desk()
    with running(desk.app) as url:
        desk.url = f"{url}/token"
        yield desk


def login(desk, user="rubin"):
    return Login(LoginSettings(desk.url, "headway", user, of("a-password")), lambda: desk.now_s)


def test_a_token_is_kept_and_renewed_a_minute_before_it_ends(desk):
    one, seen = login(desk), []
    for now_s in (1_000, 1_239, 1_240, 1_300):
        desk.now_s = now_s
        seen.append(one.token())
    assert seen == ["token-1", "token-1", "token-2", "token-2"]


@pytest.mark.parametrize(("user", "grant"), [("rubin", "grant_type=password"), ("", "grant_type=client_credentials")])
def test_it_is_asked_for_with_a_users_password_or_with_the_clients_secret(desk, user, grant):
    login(desk, user).token()
    assert desk.forms[0].startswith(grant)
    assert "a-password" in desk.forms[0]


def test_a_login_that_gives_none_leaves_the_token_that_is_good_until_its_end(desk):
    one = login(desk)
    one.token()
    desk.closed, desk.now_s = True, 1_250.0
    assert one.token() == "token-1"
    desk.now_s = 1_300.0
    with pytest.raises(SecretUnusable, match="401, Invalid user credentials") as told:
        one.token()
    assert "a-password" not in str(told.value)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ('{"error": "of \\ud83d"}', "gives no token: 200, of \ufffd"),
        ("[" * 100_000, "200, no access_token"),
        ('{"access_token": "a\\nb"}', "is not one line of printable ASCII"),
    ],
)
def test_a_login_whose_answer_is_odd_gives_no_token_and_says_why(said, why):
    app = FastAPI()
    app.post("/token")(lambda: Response(said))
    with running(app) as url, pytest.raises(SecretUnusable, match=why):
        Login(LoginSettings(f"{url}/token", "headway", "", of("a-secret")), lambda: 1_000.0).token()


def a_jwt(said):
    """A token that says of itself what is said."""
    return f"e30.{base64.urlsafe_b64encode(said.encode()).decode().rstrip('=')}.x"


ODD_ENDS = ["NaN", "Infinity", "1" + "0" * 400, "100000000001", "-1", "true", '"300"']


@pytest.mark.parametrize("odd", ODD_ENDS, ids=lambda odd: odd[:12])
@pytest.mark.parametrize("where", ["expires_in", "exp"])
def test_an_end_that_no_token_has_is_as_if_none_was_said(where, odd):
    token = a_jwt(f'{{"exp": {odd}}}') if where == "exp" else a_jwt('{"exp": 5000}')
    lasts, asked = (f', "expires_in": {odd}' if where == "expires_in" else ""), []
    app = FastAPI()
    app.post("/token")(lambda: asked.append(1) or Response(f'{{"access_token": "{token}"{lasts}}}'))
    now_s = [1_000.0]
    with running(app) as url:
        one = Login(LoginSettings(f"{url}/token", "headway", "", of("a-secret")), lambda: now_s[0])
        for now_s[0] in (1_000.0, 1_059.0, 1_060.0, 4_950.0):
            assert one.token() == token
    assert len(asked) == (3 if where == "exp" else 2)


def test_what_a_token_says_of_itself_ends_nobody():
    odd = [*(f'{{"exp": {one}}}' for one in ODD_ENDS), "[" * 100_000, "7"]
    assert [ends_s(a_jwt(one)) for one in odd] == [None] * len(odd)


def test_a_token_that_is_not_accepted_is_given_no_more_and_a_new_one_is_kept_for_a_minute(desk):
    one = login(desk)
    one.token()
    desk.now_s += 100
    one.refused("token-1")
    assert one.token() == "token-2"
    for _ in range(3):
        one.refused("token-1")  # somebody else has sent it at the same time
        one.refused("token-2")  # it is not the token, then
        assert one.token() == "token-2"
    desk.now_s += 60
    one.refused("token-2")
    assert one.token() == "token-3"


def test_who_is_told_401_comes_with_another_token_the_next_time(desk, fake, url, monkeypatch):
    one = login(desk)
    provider = OscarsProvider(settings(url, token=Secret(one.token, one.refused)), at_first)
    monkeypatch.setattr(fake, "token", "token-1")
    provider.reserve("CXA5", LATER)
    fake.token, desk.now_s = "token-2", desk.now_s + 100  # the keys of who gives them were changed
    with pytest.raises(ProviderDenied):
        provider.release("CXA5")
    assert provider.release("CXA5")


def test_ten_sentences_of_one_cause_are_a_cause_for_each_port():
    ports = ("a:1", "b:2")
    echoes = [f"{port} (Validity of urnInBw) is not valid" for port in ports]
    sums = [
        f"total port {way} bw exceeds available: {p} 9(req) / -3 (avail)"
        for p in ports
        for way in ("ingress", "egress")
    ]
    said = "\n".join(
        (*echoes, *sums, *sums, "c:3 : vlan 7 not available", "d:4 not in topology", "d:4 is not present anymore")
    )
    assert condensed(said).split("; ") == [
        "a:1: 9 Mbit/s asked, 0 free",
        "b:2: 9 Mbit/s asked, 0 free",
        "c:3: VLAN 7 is taken, or not to be had",
        "d:4: there is no such port",
    ]


def test_what_is_not_known_is_said_as_it_is():
    assert condensed("duration is too short (less than 15 min)\n") == "duration is too short (less than 15 min)"
    assert condensed("e:5 (Validity of urnInBw) is not valid") == "e:5 (Validity of urnInBw) is not valid"
