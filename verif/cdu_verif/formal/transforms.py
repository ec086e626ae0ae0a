"""DCT and inverse DCT: no word overflows, and each pass is the integer matrix of the specification."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from cdu.transform import dct, idct
from cdu_spec.config import CduConfig
from cdu_spec.dct import POINTS, basis, pass_shifts
from cdu_tools import yosys

from cdu_verif.formal.affine import AffineForm, AffinePath, AffineWord, AnalysisError, Floored, Symbol
from cdu_verif.formal.device import BoundDevice
from cdu_verif.formal.proof import UNBOUNDED, Verdict

_SCRIPT = """\
read_verilog {name}.v
hierarchy -check -top {name}
proc
opt_expr
opt_clean
opt_dff -nosdff
opt_clean
write_json {name}.netlist.json
"""


@dataclass(frozen=True)
class TransformWidths:
    """Both passes of a transform, read from the netlist.

    Each pass computes ``floor((matrix @ x + half) / 2**shift)`` for all inputs that its ports can hold, before saturation.
    Both together, for all samples (coefficients), stay within the widths of all words of the second pass and of the output.
    Of a device for both transforms, one is read at a time.
    """

    config: CduConfig
    inverse: bool
    two_way: bool = False
    engine = "exact ranges of the netlist"
    reach = UNBOUNDED

    def prove(self, device: BoundDevice, folder: Path) -> Verdict:
        """Analyse the passes of the device."""
        yosys.run(_SCRIPT.format(name=device.name), folder, yosys.writer())
        modules = json.loads((folder / f"{device.name}.netlist.json").read_text(encoding="utf-8"))["modules"]
        shifts = pass_shifts(self.config.const_bits, self.config.pass1_bits)
        passes = self._shared(modules, device) if self.two_way else self._own(modules, device)
        try:
            for one, name, shift in zip(passes, ("first", "second"), shifts, strict=True):
                self._check_matrix(one, name, shift)
            self._check_both(passes)
        except AnalysisError as error:
            return Verdict(False, str(error))
        return Verdict(True)

    def _own(self, modules: dict[str, Any], device: BoundDevice) -> list[_Pass]:
        names = ("columns", "rows") if self.inverse else ("rows", "columns")
        return [_Pass(modules[f"{device.name}__{name}"]) for name in names]

    def _shared(self, modules: dict[str, Any], device: BoundDevice) -> list[_Pass]:
        one = idct if self.inverse else dct
        config = self.config
        first = config.coefficient_bits if self.inverse else config.sample_bits
        second = one.pass_output_bits(first, config.const_bits, pass_shifts(config.const_bits, config.pass1_bits)[0])
        names = {"first": first, "second": second}
        return [_Pass(modules[f"{device.name}__{name}"], size, self.inverse) for name, size in names.items()]

    def _check_matrix(self, one: _Pass, name: str, shift: int) -> None:
        matrix = basis(self.config.const_bits)
        x = [one.symbol(f"x{n}") for n in range(POINTS)]
        half = Fraction(1 << shift, 2)
        results = one.results([_input(symbol) for symbol in x], name)
        for k, result in enumerate(results):
            row = [matrix[n][k] if self.inverse else matrix[k][n] for n in range(POINTS)]
            numerator = AffineForm(half, {symbol: Fraction(entry) for symbol, entry in zip(x, row, strict=True)})
            if result.floored is None or result.floored.reduced() != Floored(numerator, shift).reduced():
                raise AnalysisError(f"result {k} of the {name} pass is not that of the matrix")
        if len({result.stage for result in results}) > 1:
            raise AnalysisError(f"results of the {name} pass come at different times")

    def _check_both(self, passes: Sequence[_Pass]) -> None:
        first, second = passes
        lines = range(POINTS)
        between = [first.results([_input(first.symbol(f"x{line}_{n}")) for n in lines], f"{line}") for line in lines]
        for k in lines:
            second.results([between[line][k] for line in lines], f"second{k}")


def _input(symbol: Symbol) -> AffineWord:
    return AffineWord(AffineForm.of(symbol), symbol.low, symbol.high)


class _Pass:
    """One pass as a module of Yosys's JSON; ``size`` bits of each input and the direction are given of a pass for both."""

    def __init__(self, module: dict[str, Any], size: int | None = None, inverse: bool | None = None) -> None:
        self._nets = module["netnames"]
        self._module, self._inverse = module, inverse
        self._constants = {} if inverse is None else {self._nets["inverse"]["bits"][0]: inverse}
        bits = module["ports"]["i__payload"]["bits"]
        places = len(bits) // POINTS
        self._lane_bits = size or places
        self._inputs = [bits[n * places : n * places + self._lane_bits] for n in range(POINTS)]

    def symbol(self, name: str) -> Symbol:
        """A symbol with the range of an input of this pass."""
        return Symbol(name, -(1 << (self._lane_bits - 1)), (1 << (self._lane_bits - 1)) - 1)

    def results(self, inputs: Sequence[AffineWord], name: str) -> list[AffineWord]:
        """The results before saturation; AnalysisError when a word on the way may overflow."""
        path = AffinePath(self._module, list(zip(self._inputs, inputs, strict=True)), name, self._constants)
        return [path.read(bits) for bits in self._outputs()]

    def _outputs(self) -> list[list[Any]]:
        before = "sample" if self._inverse else "rounded"  # what a saturation follows
        if f"{before}0" in self._nets:
            return [self._nets[f"{before}{n}"]["bits"] for n in range(POINTS)]
        bits = self._module["ports"]["o__payload"]["bits"]
        size = len(bits) // POINTS
        return [bits[n * size : (n + 1) * size] for n in range(POINTS)]
