"""Generator of the delivered files of a unit or of one block from a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cdu_spec.config import CduConfig
from cdu_spec.config_rules import ConfigError
from cdu_spec.dma_documents import dma_c_header
from cdu_spec.geometry import VALUE_BITS
from cdu_spec.register_documents import c_header
from cdu_spec.svd import svd
from cdu_spec.systemrdl import systemrdl
from cdu_tools import cache
from cdu_tools.files import write_whole
from cdu_tools.progress import Progress, Silent
from cdu_tools.sources import sources_sha256

from cdu.delivery import blocks
from cdu.delivery.crossings import crossings
from cdu.delivery.equivalence import equivalence
from cdu.delivery.fusesoc import core_file, synth_script
from cdu.delivery.interfaces import interfaces
from cdu.delivery.ipxact import ipxact
from cdu.delivery.librelane import librelane
from cdu.delivery.manifest import manifest
from cdu.delivery.memories import Memories
from cdu.delivery.sdc import sdc
from cdu.delivery.smoke_test import smoke_test
from cdu.delivery.upf import upf
from cdu.delivery.verilog import convert, top_name, versions
from cdu.delivery.waivers import waivers


@dataclass(frozen=True)
class Generated:
    """The delivered files, in memory.

    Parameters
    ----------
    name
        Name of the files: of the configuration, or of the block.
    verilog
        Text of NAME.v.
    manifest
        Content of NAME.json.
    core
        Text of NAME.core.
    synth
        Text of NAME_synth.tcl, the script of the core's target ``synth``.
    waivers
        Text of NAME.vlt, which waives Verilator's warnings of single lines of the Verilog.
    header
        Text of NAME.h, the registers in C; None for a block.
    bench
        Text of NAME_tb.sv, a short test bench; None for a block.
    descriptions
        Texts that describe the registers to other programs, by file ending: .rdl and .svd; none for a block.
    flows
        Texts for the tools of an integrator, by file ending: constraints, equivalence, LibreLane; for a unit also IP-XACT and
        power intent.
    """

    name: str
    verilog: str
    manifest: dict[str, Any]
    core: str
    synth: str
    waivers: str
    header: str | None = None
    bench: str | None = None
    descriptions: dict[str, str] = field(default_factory=dict)
    flows: dict[str, str] = field(default_factory=dict)

    @property
    def top(self) -> str:
        """Name of the top module."""
        return top_name(self.name)

    def write(self, folder: Path) -> list[Path]:
        """Write the files into an existing folder, each whole or not at all, and return their paths."""
        description = json.dumps(self.manifest, indent=2) + "\n"
        texts = {".v": self.verilog, ".vlt": self.waivers, ".core": self.core, "_synth.tcl": self.synth, ".json": description}
        paths = []
        for ending, text in (texts | self.descriptions | self.flows | {".h": self.header, "_tb.sv": self.bench}).items():
            if text is not None:
                paths.append(folder / f"{self.name}{ending}")
                write_whole(paths[-1], text)
        return paths


#: The file of an entry of the cache.
_KEPT = "generated.json"
#: Components that contain samples of SFPR's width: the unit, its halves, and JPEG's.
_UNITS = (None, *blocks.UNITS, *blocks.HALVES, "jpeg_encoder", "jpeg_decoder")


def generate(
    config: CduConfig,
    block: str | None = None,
    memories: Memories | None = None,
    *,
    every_name: bool = False,
    shown: Progress | None = None,
) -> Generated:
    """Generate the unit of a configuration, or one of its blocks, with ``memories`` of registers or bound to macros.

    With ``every_name`` unused names are kept; ``shown`` receives the parts of the work as they begin. Raises ConfigError for an
    unknown block, and for a unit with samples of another width than SFPR's.
    """
    config = _configured(config, block)
    if config.sample_bits != VALUE_BITS and block in _UNITS:
        raise ConfigError(f"sample_bits = {config.sample_bits} builds no unit: use it with block dct, idct or two_way_dct")
    name = config.unit_name if block is None else block
    # An Amaranth component can be used once only: the manifest describes the one that the Verilog was made from.
    shown = shown or Silent()
    shown.begin(f"{name}: building the hardware in Amaranth")
    component = blocks.top(config) if block is None else blocks.BLOCKS[block](config)
    memories = memories or Memories()
    text = convert(component, top_name(name), config, memories=memories, every_name=every_name, shown=shown)
    descriptions = {".rdl": systemrdl(config, top_name(name)), ".svd": svd(config)} if block is None else {}
    header = (c_header() + (dma_c_header() if config.dma_bits else "")) if block is None else None
    files = {f"{name}.v": text} | ({f"{name}.h": header} if header is not None else {})
    files |= {f"{name}{ending}": description for ending, description in descriptions.items()}
    about = manifest(component, name, config, files, memories)
    named = (name, top_name(name), about["versions"]["cdu"], block is None)
    ports, crossed = about["ports"], crossings(text, top_name(name), about["ports"], config)
    about |= {
        "interfaces": [interface.entry() for interface in interfaces(ports, config)],
        "crossings": [crossing.entry() for crossing in crossed],
    }
    flows = {
        ".sdc": sdc(name, top_name(name), ports, crossed, config),
        "_equiv.ys": equivalence(name, top_name(name)),
        "_librelane.yaml": librelane(name, top_name(name), ports, config),
    }
    if block is None:
        flows[".xml"] = ipxact(name, top_name(name), about["versions"]["cdu"], ports, config)
        flows[".upf"] = upf(top_name(name), ports)
    bench = smoke_test(top_name(name), config, about["ports"], about["registers"]) if block is None else None
    core, synth, allowed = core_file(*named), synth_script(*named), waivers(name, top_name(name), text)
    return Generated(name, text, about, core, synth, allowed, header, bench, descriptions, flows)


def kept(
    config: CduConfig, block: str | None = None, notify: Callable[[], None] | None = None, *, every_name: bool = False
) -> Generated:
    """Return :func:`generate`'s result, from the cache if the same sources have generated it before.

    ``notify`` is called before a generation, which takes a while for a unit. Raises UserError if the cache cannot be written,
    and the errors of :func:`generate`.
    """
    config = _configured(config, block)

    def make(folder: Path) -> None:
        if notify:
            notify()
        (folder / _KEPT).write_text(json.dumps(asdict(generate(config, block, every_name=every_name))), encoding="utf-8")

    sources = sources_sha256("cdu", "cdu_spec", "cdu_tools")
    ingredients = [config.to_dict(), block, every_name, versions(), sources]
    folder = cache.entry("generated", ingredients, make)
    return Generated(**json.loads((folder / _KEPT).read_text(encoding="utf-8")))


def _configured(config: CduConfig, block: str | None) -> CduConfig:
    """Return the configuration that a unit or block is built with; ConfigError for an unknown block."""
    if block is None:
        return config
    blocks.check_block(block)
    return blocks.configured(block, config)
