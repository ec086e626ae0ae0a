"""Energies and leakage of library cells: the ``internal_power`` and ``leakage_power`` groups of the Liberty files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdu_synth.library.cell_groups import FlipFlop, flip_flops, library_groups
from cdu_synth.library.liberty import WATTS, Group, LibertyError, Library, Table, table, unit

_FARADS = {"ff": 1.0, "pf": 1e3}
_VOLTS = {"V": 1.0, "mV": 1e-3}


@dataclass(frozen=True)
class InternalEnergy:
    """One ``internal_power`` group of a pin: energies of a rising and a falling edge over (input transition, load).

    ``related`` names the inputs whose edges cause the energy, empty for the edges of the pin itself; ``when`` is a condition
    on the other pins, empty for all states that no other group of the pin covers.
    """

    related: tuple[str, ...]
    when: str
    rise: Table | None
    fall: Table | None


@dataclass(frozen=True)
class CellEnergies:
    """Energies and leakage of one cell.

    Parameters
    ----------
    pins
        Groups by pin; energies in units of the library.
    leakages
        Leakage in uW by condition; the empty condition holds for all states not listed.
    flip_flop
        Flip-flop of the cell, None for a gate.
    """

    pins: Mapping[str, tuple[InternalEnergy, ...]]
    leakages: Mapping[str, float]
    flip_flop: FlipFlop | None


@dataclass(frozen=True)
class Energies:
    """Energies of the cells that a netlist uses.

    Parameters
    ----------
    cells
        Energies of cells by name.
    volts
        Supply voltage of the library's corner.
    capacitance_ff
        Femtofarads per unit of capacitance.
    """

    cells: Mapping[str, CellEnergies]
    volts: float
    capacitance_ff: float

    @property
    def energy_fj(self) -> float:
        """Return the femtojoules per unit of energy: the unit of capacitance times 1 V squared, as in Liberty."""
        return self.capacitance_ff

    @property
    def has_internal(self) -> bool:
        """Return whether the library has internal energies of cells."""
        return any(groups for cell in self.cells.values() for groups in cell.pins.values())


def energies(library: Library, kinds: Iterable[str]) -> Energies:
    """Return the energies of some cells. Raises LibertyError for a library without a supply voltage or without such a cell."""
    tops, cells = library_groups(library, kinds)
    templates = {group.arguments[0]: group for top in tops for group in top.all("lu_table_template", "power_lut_template")}
    units = {(_capacitance_ff(top), unit(top.text("leakage_power_unit", "1nW"), WATTS)) for top in tops}
    volts = {_supply(top) for top in tops}
    if len(units) > 1 or len(volts) > 1:
        raise LibertyError(f"the files of library {library.name} have different units or supplies: use files of one corner")
    if None in volts:
        raise LibertyError(f"library {library.name} does not name its supply voltage: use one with nom_voltage")
    ((capacitance, leakage_uw),) = units
    states = flip_flops(cells)
    found = {
        name: CellEnergies(_pins(cell, templates), _leakages(cell, leakage_uw), states.get(name))
        for name, cell in cells.items()
    }
    return Energies(found, volts.pop() or 0.0, capacitance)


def _capacitance_ff(top: Group) -> float:
    number, name = top.attributes.get("capacitive_load_unit", ("1", "pf"))
    return float(number) * _FARADS[name.lower()]


def _supply(top: Group) -> float | None:
    text = top.text("nom_voltage")
    return float(text) * unit(top.text("voltage_unit", "1V"), _VOLTS) if text else None


def _grounds(cell: Group) -> set[str]:
    """Return the ground pins, whose groups are left out: their charge came from the supply and is counted there."""
    return {pin.arguments[0] for pin in cell.all("pg_pin") if pin.text("pg_type") == "primary_ground"}


def _pins(cell: Group, templates: dict[str, Group]) -> dict[str, tuple[InternalEnergy, ...]]:
    grounds = _grounds(cell)
    found = {}
    for pin in cell.all("pin"):
        groups = [group for group in pin.all("internal_power") if group.text("related_pg_pin") not in grounds]
        found[pin.arguments[0]] = tuple(_group(group, templates) for group in groups)
    return found


def _group(group: Group, templates: dict[str, Group]) -> InternalEnergy:
    tables = {edge.kind: table(edge, templates, False) for edge in group.groups if "values" in edge.attributes}
    both = tables.get("power")
    rise, fall = tables.get("rise_power", both), tables.get("fall_power", both)
    return InternalEnergy(tuple(group.text("related_pin").split()), group.text("when"), rise, fall)


def _leakages(cell: Group, leakage_uw: float) -> dict[str, float]:
    grounds = _grounds(cell)
    found = {}
    if "cell_leakage_power" in cell.attributes:
        found[""] = cell.number("cell_leakage_power") * leakage_uw
    for group in cell.all("leakage_power"):
        if group.text("related_pg_pin") not in grounds and "value" in group.attributes:
            found[group.text("when")] = group.number("value") * leakage_uw
    return found
