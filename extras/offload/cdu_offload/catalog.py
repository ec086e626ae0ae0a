"""The methods by name, built for a machine and a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cdu_spec.modes import JPEG_GMC, Mode
from cdu_tools.errors import UserError

from cdu_offload.method import OffloadMethod
from cdu_offload.network import OffloadNetwork
from cdu_offload.offload import AT_DMA, CduOffload, CopyOffload, PlainOffload
from cdu_offload.platform import Platform, titan_v
from cdu_offload.ratios import Ratios
from cdu_offload.resident import Gist, NoOffload, Software
from cdu_offload.unit import OffloadUnit


def _modes(dense: Mode, sparse: Mode, unfit: Mode) -> dict[str, Mode]:
    return {"dense": dense, "signs": Mode.BRC, "sparse": sparse, "unfit": unfit}


#: Modes of the CDUs for the kinds of activations, where the RTL has them; JPEG-ACT's table.
_MODES = {
    "cdma": {},
    "sfpr": _modes(Mode.SFPR, Mode.SFPR, Mode.SFPR),
    "jpeg-base": {},
    "jpeg-act": _modes(Mode.JPEG_ACT, Mode.SFPR_ZVC, Mode.SFPR),
    JPEG_GMC: _modes(Mode.JPEG_ACT, Mode.JPEG_ACT, Mode.SFPR),
    "division": _modes(Mode.DIVISION, Mode.DIVISION, Mode.ACTNN),
    "actnn": _modes(Mode.ACTNN, Mode.ACTNN, Mode.ACTNN),
}
#: Method -> its title in reports, in the order of reports.
TITLES = {
    "none": "no offload",
    "vdnn": "vDNN",
    "cdma": "cDMA+",
    "gist": "GIST (GPU)",
    "sfpr": "SFPR",
    "jpeg-base": "JPEG-BASE",
    "jpeg-act": "JPEG-ACT",
    JPEG_GMC: "JPEG-GMC, one copy",
    "division": "DIVISION (CDU)",
    "actnn": "ActNN (CDU)",
    "division-software": "DIVISION (GPU)",
    "actnn-software": "ActNN (GPU)",
}
#: Methods whose bytes are those of the codec of the same name in ``cdu train``.
MEASURED = ("gist", *_MODES)
#: Methods whose activations pass through CDUs.
THROUGH_CDUS = tuple(_MODES)


@dataclass(frozen=True)
class Machine:
    """The machine for which methods are built."""

    platform: Platform
    unit: OffloadUnit
    software: Mapping[str, Software]  #: by method in software
    placement: str = AT_DMA
    partitions: int = 1  #: partitions of the GPU's memory: number of CDUs at the cache

    @classmethod
    def usual(
        cls,
        known: Mapping[str, Mapping[str, Any]],
        unit: OffloadUnit,
        networks: Mapping[str, OffloadNetwork],
        link_bytes_per_s: float | None,
        placement: str,
    ) -> Machine:
        """Return the machine of platform.json (``known``), JPEG-ACT's GPU, with another link if one is given."""
        anchor = networks[known["slowdown_network"]["value"]]
        platform = titan_v(known, anchor, link_bytes_per_s)
        software = {
            name: Software.of_slowdown(known[fact]["value"], anchor, platform)
            for name, fact in (("division-software", "division_slowdown"), ("actnn-software", "actnn_slowdown"))
        }
        return cls(platform, unit, software, placement, known["memory_partitions"]["value"])

    def with_link(self, bytes_per_s: float) -> Machine:
        """Return the machine with another link."""
        return replace(self, platform=replace(self.platform, link_bytes_per_s=bytes_per_s))

    def with_cdus(self, cdus: int) -> Machine:
        """Return the machine with another number of the same CDUs."""
        return replace(self, unit=self.unit.resized(cdus))

    def with_clock(self, clock_hz: float) -> Machine:
        """Return the machine with CDUs of another clock."""
        return replace(self, unit=replace(self.unit, clock_hz=clock_hz))


def build(name: str, machine: Machine, network: OffloadNetwork, ratios: Mapping[str, Ratios]) -> OffloadMethod:
    """Return a method of TITLES; UserError if its ratios were not measured on such a network."""
    if name in MEASURED and name not in ratios:
        raise UserError(
            f"nothing is known of how {name} compresses {network.name}: run cdu train --model {network.family} --codec {name} "
            "and give its results.json as --ratios"
        )
    platform = machine.platform
    in_gpu: dict[str, Callable[[], OffloadMethod]] = {
        "none": NoOffload,
        "vdnn": lambda: PlainOffload(platform),
        "gist": lambda: Gist(platform, ratios[name]),
    }
    if name in in_gpu:
        return in_gpu[name]()
    if name in machine.software:
        return machine.software[name]
    unit = machine.unit if machine.placement == AT_DMA else machine.unit.resized(machine.partitions)
    kind = CopyOffload if name == JPEG_GMC else CduOffload
    return kind(platform, unit, machine.placement, _MODES[name], ratios[name])
