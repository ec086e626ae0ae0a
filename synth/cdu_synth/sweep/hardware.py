"""Hardware of a point and its cost: Verilog is generated first, and equal Verilog is synthesised once."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from cdu.delivery import generator, verilog
from cdu.delivery.blocks import whole
from cdu_spec.config import CduConfig
from cdu_tools import yosys
from cdu_tools.sources import sources_sha256

from cdu_synth.area import flow
from cdu_synth.area.block_selection import UNIT
from cdu_synth.area.recipes import CLOCK_NS, RECIPES, check_clock, check_recipes
from cdu_synth.library import liberty, pdk

#: The comment at the top of a generated file, which names the configuration.
_HEAD = re.compile(r"\A(//.*\n)+\n*")


@dataclass(frozen=True)
class Elaboration:
    """Measure ``verilog``: the text of a block, without the comment at its top, compressed, its checksum, and the block.

    ``block`` is a name from :data:`cdu.delivery.blocks.BLOCKS`; ``array`` is the whole unit, with DMA engine and own clocks.
    """

    block: str
    name: str = "verilog"

    def versions(self) -> dict[str, str]:
        """Implement :class:`~cdu_synth.sweep.task.Measure`."""
        return verilog.versions() | {"generator": sources_sha256("cdu", "cdu_spec", "cdu_tools")}

    def whats(self, config: CduConfig) -> Iterator[dict[str, Any]]:
        """Implement :class:`~cdu_synth.sweep.task.Measure`: all parameters but the name, which only the comment states."""
        block = whole(config) if self.block == UNIT else self.block
        yield {"block": block, "config": config.override(name=CduConfig.name).to_dict()}

    def run(self, what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
        """Implement :class:`~cdu_synth.sweep.task.Measure`. Raises ConfigError for a block that cannot be built so."""
        text = _HEAD.sub("", generator.generate(CduConfig.from_dict(what["config"]), what["block"]).verilog).encode()
        packed = base64.b64encode(zlib.compress(text)).decode()
        return {"sha256": hashlib.sha256(text).hexdigest(), "packed": packed, "block": what["block"]}


@dataclass(frozen=True)
class Area:
    """Measure ``area``: the :class:`~cdu_synth.area.flow.Cost` of a Verilog text, and ``mhz``.

    Parameters
    ----------
    block
        Name of the block.
    library
        Name or file of the cell library, which every worker finds for itself; its checksum is verified.
    clock_ns
        Period in ns for which gates are sized.
    recipes
        Names from :data:`cdu_synth.area.recipes.RECIPES`; :func:`cdu_synth.area.flow.choose` takes the best.
    engine
        Name of the Yosys that synthesises.

    Raises UserError for a clock or a recipe that is not allowed.
    """

    block: str
    library: str = pdk.DEFAULT
    clock_ns: float = CLOCK_NS
    recipes: Sequence[str] = tuple(RECIPES)
    engine: str = yosys.GENERATOR
    name: str = "area"

    def __post_init__(self) -> None:
        check_clock(self.clock_ns)
        check_recipes(self.recipes)

    def versions(self) -> dict[str, str]:
        """Implement :class:`~cdu_synth.sweep.task.Measure`. Raises MissingToolError if the library or Yosys is missing."""
        build = yosys.engine(self.engine)
        return {
            **build.tools,
            "library_sha256": _library(self.library).sha256,
            "flow": sources_sha256(*flow.SOURCES),
        }

    def what(self, verilog_sha256: str, block: str) -> dict[str, Any]:
        """Return everything that the cost of a block's Verilog text depends on."""
        chosen = {"clock_ns": self.clock_ns, "recipes": list(self.recipes)}
        return {"verilog_sha256": verilog_sha256, "block": block, **chosen}

    def run(self, what: Mapping[str, Any], attachment: str) -> dict[str, Any]:
        """Synthesise the packed text of an :class:`Elaboration`."""
        text = zlib.decompress(base64.b64decode(attachment))
        assert hashlib.sha256(text).hexdigest() == what["verilog_sha256"], "the text is not the one that was generated"
        build, library = yosys.engine(self.engine), _library(self.library)
        top = verilog.top_name(what["block"])
        costs = flow.synthesise(text.decode(), top, library, self.clock_ns, build, recipes=self.recipes)
        cost = flow.choose(costs, self.clock_ns)
        return asdict(cost) | {"mhz": cost.mhz}


@lru_cache(maxsize=2)
def _library(name: str) -> liberty.Library:
    """Return a library, read once in every worker."""
    return pdk.find(name).read()
