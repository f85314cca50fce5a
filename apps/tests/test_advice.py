"""What the page tells an operator to type is there to be typed."""

import typer

from apps.cli.main import app
from controller.northbound.page.needs import ADVICE


def test_every_command_that_the_page_names_is_one():
    commands = set(typer.main.get_command(app).commands)
    named = {command.split()[1] for _, command in ADVICE.values() if command.startswith("headway ")}
    assert named
    assert named <= commands
