"""SRAM macros beside the cells of a library: their data for static timing and area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdu.delivery.memories import Macro

from cdu_synth.library.liberty import Arc, Cell, LibertyError, Library, Table, read

_NOTHING = Table((0.0,), (0.0,), ((0.0,),))


def with_macros(library: Library, macros: Sequence[Macro]) -> Library:
    """Return the library with the macros as cells of their own, which logic is not mapped onto.

    A macro without a Liberty file has no area, and paths begin and end at its pins as at ports. Raises LibertyError for a file
    without the macro or its pins, or with other units than the library's, and for a macro that reads at the falling edge.
    """
    cells = dict(library.cells)
    for macro in macros:
        cells[macro.macro] = _described(library, macro) if macro.liberty else _unknown(macro)
    return replace(library, cells=cells)


def blackboxes(macros: Sequence[Macro]) -> str:
    """Return Verilog of the macros' ports, for Yosys."""
    return "".join(
        f"(* blackbox *) module {name} ({', '.join(pins)});\n{''.join(pins.values())}endmodule\n"
        for name, pins in {macro.macro: _declarations(macro) for macro in macros}.items()
    )


def _declarations(macro: Macro) -> dict[str, str]:
    return {
        pin: f"  {'output' if signal == 'read_data' else 'input'} [{_bits(macro, signal) - 1}:0] {pin};\n"
        for pin, signal in macro.pins.items()
    }


def _bits(macro: Macro, signal: str) -> int:
    """Return the bits of the pin that a signal or a constant is connected to."""
    if signal.endswith("_data"):
        return macro.macro_width
    if signal.endswith("_address"):
        return (macro.macro_depth - 1).bit_length()
    return int(signal.partition("'")[0]) if "'" in signal else 1


def _names(macro: Macro, pin: str, signal: str) -> list[str]:
    """Return the names of a pin's bits in Liberty and :class:`~cdu_synth.area.timing.Netlist`."""
    bits = _bits(macro, signal)
    return [f"{pin}[{bit}]" for bit in range(bits)] if bits > 1 else [pin]


def _unknown(macro: Macro) -> Cell:
    clock = next(pin for pin, signal in macro.pins.items() if signal == "clk")
    inputs: list[str] = []
    outputs: list[str] = []
    for pin, signal in macro.pins.items():
        (outputs if signal == "read_data" else inputs).extend(_names(macro, pin, signal))
    both, none = (_NOTHING, _NOTHING), (None, None)
    return Cell(
        name=macro.macro,
        area=0.0,
        leakage_uw=0.0,
        usable=False,
        flip_flop=False,
        capacitances=dict.fromkeys(inputs, 0.0),
        functions={},
        arcs=tuple(Arc(clock, pin, "rising_edge", "non_unate", both, both) for pin in outputs),
        setups=tuple(Arc(clock, pin, "setup_rising", "non_unate", none, none) for pin in inputs if pin != clock),
        macro=True,
    )


def _described(library: Library, macro: Macro) -> Cell:
    assert macro.liberty is not None
    found = read(macro.macro, [macro.liberty])
    if found.units != library.units:
        raise LibertyError(f"{macro.liberty} counts in {found.units}, library {library.name} in {library.units}: use the same")
    cell = found.cells.get(macro.macro)
    if cell is None:
        raise LibertyError(f"{macro.liberty} has no cell {macro.macro}: name the file that has it")
    if any(arc.kind == "falling_edge" for arc in cell.arcs):
        raise LibertyError(f"{macro.macro} gives its word at the falling edge, which is not timed here: leave its liberty out")
    known = {*cell.capacitances, *(arc.target for arc in cell.arcs)}
    for pin, signal in macro.pins.items():
        missing = [name for name in _names(macro, pin, signal) if name not in known]
        if missing:
            raise LibertyError(f"{macro.liberty} has no pin {missing[0]} of {macro.macro}: correct pins and sizes of the macro")
    return replace(cell, usable=False, macro=True)
