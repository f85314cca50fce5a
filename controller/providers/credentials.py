"""What is written of credentials: a token, or a login that gives tokens."""

from controller.providers.errors import SecretUnusable
from controller.providers.secrets import Secret, secret_from
from controller.providers.tokens import Login, LoginSettings
from controller.settings.sections import FilePath, Section
from topology.problems import Problems


class LoginSection(Section):
    """Where tokens are had; with ``user`` the secret is that user's password, without it the client's own."""

    url: str
    client: str
    user: str = ""
    secret_env: str | None = None
    secret_file: FilePath | None = None


class CredentialsSection(Section):
    """One of the three is given."""

    token_env: str | None = None
    token_file: FilePath | None = None
    login: LoginSection | None = None


def token_of(section: CredentialsSection, problems: Problems) -> Secret | None:
    """Return the access token, as it is each time it is revealed; None if what is written cannot be used."""
    login, here = section.login, problems
    if login is not None and (section.token_env or section.token_file):
        problems.add("token_env or token_file, or login: one of them")
        return None
    try:
        if login is None:
            return secret_from(section.token_env, section.token_file)
        here = problems.at("login")
        secret = secret_from(login.secret_env, login.secret_file)
        tokens = Login(LoginSettings(login.url, login.client, login.user, secret))
        return Secret(tokens.token, tokens.refused)
    except SecretUnusable as error:
        here.add(f"{'secret_env or secret_file' if login else 'token_env or token_file'}: {error}")
    except ValueError as error:
        here.add(error)
    return None
