"""``cdu generate``: Verilog, manifest, FuseSoC description and registers of a unit, or Verilog of one of its blocks."""

from __future__ import annotations

from typing import Annotated

import typer
from cdu_driver.c_files import c_files
from cdu_driver.cycles import cycles_files
from cdu_tools.files import make_folder, write_whole

from cdu_cli.options import ConfigOption, JsonOption, MemoriesOption, OutputOption, SetOption, bound, configuration, write_json
from cdu_cli.progress import ProgressBar

BlockOption = Annotated[str | None, typer.Option("--block", help="A block (`cdu list --all` names them) instead of the unit.")]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu generate --config tiny --set value_format=bf16 -o build/rtl")(generate)


def generate(
    output: OutputOption,
    config: ConfigOption = "tiny",
    settings: SetOption = None,
    block: BlockOption = None,
    memories: MemoriesOption = None,
    json_file: JsonOption = None,
) -> None:
    """Write NAME.v (Verilog-2005), NAME.json (ports, bit fields, registers, checksums), NAME.core (FuseSoC), NAME.vlt (lint).

    NAME.sdc has the constraints, NAME_equiv.ys proves a mapped netlist equal to NAME.v, NAME_librelane.yaml is LibreLane's
    configuration. For the whole unit also NAME.xml, a component in IP-XACT, NAME.upf, a sketch of the power intent, its
    registers, NAME.h in C, NAME.rdl in SystemRDL and NAME.svd for debuggers, NAME_tb.sv, a bench of a page, the driver in C,
    cdu_dma.h and cdu_dma.c, or cdu_example.c if the unit has no DMA engine, and a performance model in C++, NAME_timing.hpp
    and the cdu_cycles*.hpp that it includes, unless streams have clocks of their own. NAME is the name of the configuration,
    or of the block with --block. The bytes are the same on every machine and Python; NAME.json records the Python.
    """
    chosen = configuration(config, settings)
    from cdu.delivery import generator

    macros = bound(memories)
    with ProgressBar() as shown:
        result = generator.generate(chosen, block, macros, shown=shown)
        for line in macros.unused([result.manifest]):
            shown.say(line)
    folder = make_folder(output)
    paths = result.write(folder)
    if block is None:
        for name, text in (c_files(result.name, bool(chosen.dma_bits)) | cycles_files(chosen, result.name)).items():
            paths.append(folder / name)
            write_whole(paths[-1], text)
    for path in paths:
        typer.echo(path)
    write_json(json_file, result.manifest)
