"""Provenance of a report of synthesis, power, comparison or placement: configuration, tools, library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cdu.delivery import verilog
from cdu.delivery.blocks import changes
from cdu_spec.config import CduConfig

from cdu_synth.library.liberty import Library


def provenance(
    config: CduConfig,
    command: str,
    tools: Mapping[str, str],
    library: Library | None = None,
    clock_ns: float | None = None,
    recipes: Sequence[str] = (),
    blocks: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the entries of a report's JSON file that say how it was made.

    Parameters
    ----------
    config
        Configuration of the hardware.
    command
        Command line that makes the report.
    tools
        Versions of the programs besides those that wrote the Verilog; ``synthesis`` is ``name version`` of Yosys.
    library, clock_ns, recipes
        Library of cells, target period in ns, and names from :data:`cdu_synth.area.recipes.RECIPES`; all of them are left out
        without a library.
    blocks
        Names of the blocks built; for blocks that cannot be built with the configuration the replaced parameters are stated.
    """
    made: dict[str, Any] = {"unit": config.unit_name, "config": config.to_dict(), "command": command}
    made["versions"] = verilog.versions() | dict(tools)
    if built_with := {name: changed for name in blocks if (changed := changes(name, config))}:
        made["built_with"] = built_with
    if library is None:
        return made
    return {
        "pdk": library.name,
        "library_files": [path.name for path in library.files],
        "library_sha256": library.sha256,
        "gate": {"name": library.gate.name, "area_um2": library.gate.area},
        "clock_ns": clock_ns,
        "recipes": list(recipes),
        **made,
    }


def facts(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the provenance as lines of a page (:class:`cdu_tools.report.Page`)."""
    lines = {
        "command": f"`{content['command']}`",
        "configuration": f"`{json.dumps(content['config'])}`",
        "versions": ", ".join(f"{name} {version}" for name, version in content["versions"].items()),
    }
    for name, changed in content.get("built_with", {}).items():
        lines[f"{name} was built with"] = f"`{json.dumps(changed)}`"
    if "pdk" in content:
        lines["mapping"] = f"{', '.join(content['recipes'])}, for {content['clock_ns']:g} ns"
        files = ", ".join(content["library_files"])
        lines["library"] = f"{files}, SHA-256 of the unpacked text {content['library_sha256']}"
    return lines


def gate(content: Mapping[str, Any]) -> str:
    """Return a sentence that defines one gate equivalent."""
    return f"1 GE = {content['gate']['name']} = {content['gate']['area_um2']} um2."
