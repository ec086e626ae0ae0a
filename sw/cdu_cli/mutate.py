"""``cdu mutate``: whether the benches find faults that are put into the Verilog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_tools.files import make_folder

from cdu_cli.mapping import BlocksOption
from cdu_cli.options import ConfigOption, JsonOption, OutputOption, SetOption, configuration, distinct
from cdu_cli.progress import ProgressBar, command_line, publish

#: Every mutant is one simulation, and a part of one netlist.
_MAX_MUTANTS = 1000
MutantsOption = Annotated[int, typer.Option("--mutants", help="Faults of each block, one at a time.", min=1, max=_MAX_MUTANTS)]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of their choice and of all stimulus.", min=0, max=MAX_SEED)]

TableOption = Annotated[
    Path | None, typer.Option("--table", help="Also put the rows of each block in this mutants.csv, in place of its old ones.")
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu mutate --block zvc_encoder --mutants 40 -o build/mutants")(mutate)


def mutate(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlocksOption = None,
    mutants: MutantsOption = 40,
    seed: SeedOption = 1,
    table: TableOption = None,
    json_file: JsonOption = None,
) -> None:
    """Put faults into the generated Verilog, one at a time, and count those that the benches of the block find.

    Writes report.json, report.md and mutants.csv. Where the programs of `cdu formal` are installed, mutants that no
    bench finds are proven equivalent, which are not counted, or given to the block's proofs.
    """
    chosen, blocks = configuration(config, settings), distinct("--block", block)
    from cdu_verif.mutation.mutate_blocks import MutationSettings, mutate_blocks

    wanted = MutationSettings(chosen, output, blocks, mutants, seed, table)
    make_folder(output)
    with ProgressBar() as shown:
        report = mutate_blocks(wanted, command_line(), shown)
    publish(report, output, json_file)
