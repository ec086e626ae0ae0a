"""Wires of a placed netlist in SPEF (IEEE 1481), which OpenSTA and other timing analysis can read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from cdu_synth.area.timing import PORT, Net, Netlist
from cdu_synth.library.liberty import Library

from cdu_placement.rows import CellRows
from cdu_placement.wires import Tree, driving_pin, pins_at

_HEAD = """\
*SPEF "IEEE 1481-1998"
*DESIGN "{name}"
*DATE "{date}"
*VENDOR "cdu"
*PROGRAM "cdu place"
*VERSION "0"
*DESIGN_FLOW "NETLIST_TYPE_VERILOG"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER [ ]
*T_UNIT 1 NS
*C_UNIT 1 FF
*R_UNIT 1 OHM
*L_UNIT 1 HENRY

"""


def spef(name: str, netlist: Netlist, library: Library, rows: CellRows, trees: dict[Net, Tree]) -> str:
    """Return the trees of a netlist whose cells are called ``c7`` and nets ``n9``, by their numbers."""
    date = datetime.fromtimestamp(0, UTC).strftime("%H:%M:%S %a %b %d, %Y")
    return _HEAD.format(name=name, date=date) + "".join(_nets(netlist, library, rows, trees))


def _nets(netlist: Netlist, library: Library, rows: CellRows, trees: dict[Net, Tree]) -> Iterator[str]:
    assert rows.ohm_per_um is not None
    assert rows.ff_per_um is not None
    for net, tree in trees.items():
        total = sum(tree.lengths) * rows.ff_per_um
        ends = [
            driving_pin(netlist, library, tree.ends[0], net),
            *(pins_at(netlist, library, end, net) for end in tree.ends[1:]),
        ]
        yield f"*D_NET n{net} {total:.6g}\n*CONN\n"
        for place, pins in enumerate(ends):
            for pin in pins:
                kind, way = ("P", "I" if place == 0 else "O") if tree.ends[place] == PORT else ("I", "O" if place == 0 else "I")
                yield f"*{kind} {_node(tree.ends[place], pin, net)} {way}\n"
        yield "*CAP\n"
        shares = [0.0] * len(ends)
        for place, (length, before) in enumerate(zip(tree.lengths, tree.before, strict=True)):
            shares[place] += length * rows.ff_per_um / 2
            shares[before] += length * rows.ff_per_um / 2
        for place, share in enumerate(shares):
            yield f"{place + 1} {_node(tree.ends[place], ends[place][0], net)} {share:.6g}\n"
        yield "*RES\n"
        number = 0
        for place, (length, before) in enumerate(zip(tree.lengths, tree.before, strict=True)):
            here = _node(tree.ends[place], ends[place][0], net)
            if place:
                number += 1
                # This format has no wires without resistance.
                ohm = max(1e-6, length * rows.ohm_per_um)
                yield f"{number} {_node(tree.ends[before], ends[before][0], net)} {here} {ohm:.6g}\n"
            for pin in ends[place][1:]:
                number += 1
                yield f"{number} {here} {_node(tree.ends[place], pin, net)} 1e-06\n"
        yield "*END\n\n"


def _node(end: int, pin: str, net: Net) -> str:
    return f"n{net}" if end == PORT else f"c{end}:{pin}"
