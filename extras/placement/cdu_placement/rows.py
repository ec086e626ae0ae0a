"""Rows for the cells of a library, and the wires above them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdu_synth.library.liberty import Library
from cdu_tools.errors import UserError

#: Femtofarads per unit of capacitance that libraries use.
_FEMTOFARAD = {"ff": 1.0, "pf": 1000.0}


@dataclass(frozen=True)
class CellRows:
    """Rows for the cells of a library, and the resistance and capacitance of a wire between them.

    Parameters
    ----------
    height_um, site_um
        Size of a row and of its sites; cells are whole sites wide.
    ohm_per_um, ff_per_um
        Resistance and capacitance of a wire, coupling to its neighbours included; None if this project knows no figure.
    """

    height_um: float
    site_um: float
    ohm_per_um: float | None = None
    ff_per_um: float | None = None

    def sites(self, area_um2: float) -> int:
        """Return the number of sites of a cell of this area."""
        return max(1, round(area_um2 / (self.height_um * self.site_um)))


#: Rows by library, from the LEF file of each. Wires of nangate45: 3.57 ohm is metal3's of that file; 0.2 fF is typical of a
#: wire among others in 45 nm, while the file's 0.052 fF is that of a wire alone above the ground.
KNOWN = {
    "nangate45": CellRows(1.4, 0.19, 3.57, 0.2),
    "sky130hd": CellRows(2.72, 0.46),
    "asap7": CellRows(0.27, 0.054),
    "ihp_sg13g2": CellRows(3.78, 0.48),
}


def rows_of(library: Library, ohm_per_um: float | None = None, ff_per_um: float | None = None) -> CellRows:
    """Return the rows of a library, with the given wires or else the known ones.

    Raises UserError for a library whose rows or wires are unknown, and for impossible wires.
    """
    if library.name not in KNOWN:
        raise UserError(f"the rows of library {library.name} are not known: use {', '.join(KNOWN)}")
    rows = KNOWN[library.name]
    rows = replace(
        rows,
        ohm_per_um=rows.ohm_per_um if ohm_per_um is None else ohm_per_um,
        ff_per_um=rows.ff_per_um if ff_per_um is None else ff_per_um,
    )
    if rows.ohm_per_um is None or rows.ff_per_um is None:
        raise UserError(f"the wires of library {library.name} are not known: say --wire-ohm and --wire-ff, both per um")
    for name, value in (("--wire-ohm", rows.ohm_per_um), ("--wire-ff", rows.ff_per_um)):
        if not 0 <= value <= 1000:
            raise UserError(f"{name} {value:g} is not allowed: use 0 to 1000 per um")
    return rows


def femtofarad(library: Library) -> float:
    """Return the femtofarads per unit of capacitance of a library."""
    unit = library.units.split()[-1].lower()
    return float(library.units.split()[-2]) * _FEMTOFARAD[unit]
