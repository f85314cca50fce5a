"""``headway login``: by an issuer of OpenID Connect, in any browser, with a code; the tokens are kept and renewed."""

from pathlib import Path
from typing import Annotated

import typer

from apps.cli import base, identity, options, trust

app = typer.Typer()
Issuer = Annotated[
    str, typer.Option(envvar="HEADWAY_ISSUER", help="Its address, as access.oidc of the controller has it.")
]
Client = Annotated[str, typer.Option(envvar="HEADWAY_CLIENT", help="As which client of the issuer, a public one.")]
Scope = Annotated[str, typer.Option(help="What is asked for; offline_access for a login that lasts.")]


@app.command()
def login(
    issuer: Issuer,
    client: Client,
    scope: Scope = "openid offline_access",
    url: options.Url = options.DEFAULT_URL,
) -> None:
    """Log in by the issuer that the controller trusts: open the address that is printed, in any browser, and say yes.

    The other commands show this controller the token then, and have a new one when it ends.

    Example: headway login --issuer https://login.example.org/realms/site --client headway
    """
    from apps.cli import login_work
    from headway.errors import NotAUrl
    from headway.transport import Transport

    logins = _logins()
    try:
        Transport(url)
        began = login_work.begun(login_work.asked_of(issuer, client, trust.context(issuer, is_issuer=True)), scope)
        typer.echo(f"open {began.address} and enter the code {began.code}", err=True)
        if began.direct:
            typer.echo(f"or open {began.direct}", err=True)
        with base.waiting("waiting for the browser"):
            kept = login_work.finished(began)
        login_work.keep(logins, url, kept)
    except NotAUrl as error:
        base.stop(f"{error}; set --url or HEADWAY_URL", base.EXIT_USAGE)
    except (login_work.LoginFailed, trust.NotUsable) as error:
        base.stop(str(error), base.EXIT_FAILED)
    typer.echo(f"logged in at {url}; who you are there: headway whoami")


@app.command()
def logout(url: options.Url = options.DEFAULT_URL) -> None:
    """Forget the login at a controller on this machine; the issuer's own stays.

    Example: headway logout
    """
    from apps.cli import login_work

    try:
        was = login_work.forget_login(_logins(), url)
    except login_work.LoginFailed as error:
        base.stop(str(error), base.EXIT_FAILED)
    typer.echo(f"logged out of {url}" if was else f"there was no login at {url}")


def _logins() -> Path:
    """Return where logins are kept; before anybody is sent to a browser it is said that there is no such place."""
    logins = identity.logins_path()
    if logins.parent == trust.NOWHERE:
        base.stop("you have no home to keep a login in: set HOME or XDG_CONFIG_HOME", base.EXIT_USAGE)
    return logins
