"""``cdu vectors``: stimulus and expected bytes for somebody else's test bench."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.config_rules import ConfigError
from cdu_spec.modes import Mode
from cdu_tools.errors import UserError
from cdu_tools.files import make_folder

from cdu_cli.options import (
    ConfigOption,
    JsonOption,
    OutputOption,
    SetOption,
    configuration,
    distinct,
    write_json,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: cdu vectors --config tiny --mode jpeg-act --seed 7 -o build/vectors")(vectors)


def vectors(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    mode: Annotated[list[str] | None, typer.Option(help="One mode; may be given several times. Default: all built in.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random tensors.", min=0, max=MAX_SEED)] = 1,
    json_file: JsonOption = None,
) -> None:
    """Write hex files ($readmemh) and vectors.json for the streams of a Compressor and of a Decompressor.

    Expected values come from the golden model. Division has a first pass of each tensor, mx every format. The entry `format` of
    vectors.json has the order of values (tiles of 8 x 32) and the meaning of `count`.
    """
    chosen = configuration(config, settings)
    try:
        modes = [Mode.from_label(label) for label in distinct("--mode", mode) or chosen.modes]
    except ValueError as error:
        raise UserError(str(error)) from None
    for wanted in modes:
        if wanted not in chosen.built_modes:
            raise ConfigError(f"mode {wanted.label} is not built in: use {', '.join(chosen.modes)}")
    from cdu_verif.stimulus import vectors as writer

    folder = make_folder(output)
    content = writer.write(chosen, modes, seed, folder)
    for half, part in content["halves"].items():
        typer.echo(f"{folder / 'vectors.json'}: {half}: {len(part['jobs'])} jobs")
    write_json(json_file, content)
