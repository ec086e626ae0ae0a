"""``cdu`` with all its commands, built once for many invocations: typer's own runner builds it for each."""

import typer.main
from cdu_cli.main import app

ENTRY = typer.main.get_command(app)
