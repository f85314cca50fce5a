"""What starting an agent costs: it loads these packages and no others."""

import subprocess
import sys

import pytest

OURS = {"hostagent", "topology"}
NEEDED = {
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "websockets",
    "yaml",
}
TRUST = {"cryptography", "_cffi_backend", "_openssl", "bcrypt"}  # the last one is taken by cryptography if it is there
MOST_MODULES = 420  # of all, Python's own included; it was 496
HEAVY = {"asyncio", "networkx", "rich", "structlog", "typer", "pyroute2", "prometheus_client", "fastapi", "sqlalchemy"}


@pytest.fixture(scope="module")
def loaded():
    code = "import sys, hostagent.agent.daemon; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    at_start = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split()) - set(at_start.stdout.split())


def test_the_agent_loads_what_it_needs_and_nothing_else(loaded):
    packages = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    compiled = {name for name in packages if name.startswith(("_cython_", "cython_runtime", "_sysconfigdata_"))}
    assert packages - compiled <= OURS | NEEDED | TRUST


def test_the_agent_starts_without_what_only_its_commands_and_the_controller_need(loaded):
    assert not HEAVY & {name.partition(".")[0] for name in loaded}
    assert len(loaded) < MOST_MODULES
