"""Analysis of exact ranges of integer data paths, read from the netlist.

Every word of a path that only adds, subtracts, negates and shifts is an affine form of the inputs, with exact rational
coefficients. Cut-off low bits add one more symbol to the form: the lost part. The range of a form over independent symbols is
exact, so a word as wide as the range of its form cannot overflow, whatever the inputs; and the coefficients say which linear
map the netlist computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType
from typing import Any

#: A bit of Yosys's JSON: the number of a net, or "0", "1", "x".
Bit = int | str


class AnalysisError(Exception):
    """Word that may overflow, or logic that is no affine data path."""


@dataclass(frozen=True)
class Symbol:
    """An independent integer between two bounds: an input, or the part lost in a right shift."""

    name: str
    low: int
    high: int


@dataclass(frozen=True)
class AffineForm:
    """``constant + sum(coefficient * symbol)``."""

    constant: Fraction
    terms: Mapping[Symbol, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, symbol: Symbol) -> AffineForm:
        """Return the form of a single symbol."""
        return cls(Fraction(0), {symbol: Fraction(1)})

    def __add__(self, other: AffineForm) -> AffineForm:
        terms = dict(self.terms)
        for symbol, coefficient in other.terms.items():
            terms[symbol] = terms.get(symbol, Fraction(0)) + coefficient
        return AffineForm(self.constant + other.constant, {symbol: value for symbol, value in terms.items() if value})

    def __mul__(self, factor: Fraction | int) -> AffineForm:
        if not factor:
            return AffineForm(Fraction(0))
        return AffineForm(self.constant * factor, {symbol: value * factor for symbol, value in self.terms.items()})

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """Return the least and the greatest value."""
        ends = [(value * symbol.low, value * symbol.high) for symbol, value in self.terms.items()]
        return self.constant + sum(map(min, ends)), self.constant + sum(map(max, ends))


@dataclass(frozen=True)
class Floored:
    """``floor(numerator / 2**shift)``, the result of a right shift of a form."""

    numerator: AffineForm
    shift: int

    def reduced(self) -> Floored:
        """Return the same result without the power of two that divides all coefficients."""
        places = 0
        while places < self.shift and all(value % (2 << places) == 0 for value in self.numerator.terms.values()):
            places += 1
        terms = {symbol: value / (1 << places) for symbol, value in self.numerator.terms.items()}
        return Floored(AffineForm(Fraction(floor(self.numerator.constant / (1 << places))), terms), self.shift - places)


@dataclass(frozen=True)
class AffineWord:
    """An integer in the path.

    Parameters
    ----------
    form
        Affine form of the word.
    low, high
        Range of the word.
    stage
        Number of registers that it has passed.
    floored
        Form and shift that it comes from, if it was shifted right.
    """

    form: AffineForm
    low: int
    high: int
    stage: int = 0
    floored: Floored | None = None

    @classmethod
    def of(cls, form: AffineForm, low: int, high: int, stage: int = 0) -> AffineWord:
        """Return a word with a range from its operands, reduced to that of its form, which includes their dependence."""
        least, most = form.range
        return cls(form, max(low, ceil(least)), min(high, floor(most)), stage)

    def __add__(self, other: AffineWord) -> AffineWord:
        return AffineWord.of(self.form + other.form, self.low + other.low, self.high + other.high, max(self.stage, other.stage))

    def __neg__(self) -> AffineWord:
        return AffineWord.of(self.form * -1, -self.high, -self.low, self.stage)

    def __lshift__(self, places: int) -> AffineWord:
        return AffineWord.of(self.form * (1 << places), self.low << places, self.high << places, self.stage)

    def floor(self, places: int, lost: str) -> AffineWord:
        """Return the word without its lowest bits; ``lost`` names the symbol for them."""
        rest = Symbol(lost, 0, (1 << places) - 1)
        form = (self.form + AffineForm.of(rest) * -1) * Fraction(1, 1 << places)
        return AffineWord(form, self.low >> places, self.high >> places, self.stage, Floored(self.form, places))

    def delayed(self) -> AffineWord:
        """Return the word after a register."""
        return replace(self, stage=self.stage + 1)


class AffinePath:
    """Compute the words of one module from forms of its inputs.

    Parameters
    ----------
    module
        A module of Yosys's JSON after ``proc; opt_dff``, without submodules in the path.
    inputs
        For each input the bits of its net (least significant first, two's complement) and its value.
    name
        Prefix of the names of symbols for lost bits, which are equal only for the same path and prefix.
    constants
        Nets with a constant value; a multiplexer that one selects passes one of its inputs.
    """

    def __init__(
        self,
        module: Mapping[str, Any],
        inputs: Sequence[tuple[Sequence[Bit], AffineWord]],
        name: str = "",
        constants: Mapping[Bit, bool] = MappingProxyType({}),
    ) -> None:
        self._name, self._constants = name, constants
        self._cuts: dict[tuple[tuple[Bit, ...], int], AffineWord] = {}
        self._words: dict[tuple[Bit, ...], AffineWord] = {}
        self._place: dict[Bit, tuple[tuple[Bit, ...], int]] = {}
        self._drivers: dict[Bit, Mapping[str, Any]] = {}
        for cell in module["cells"].values():
            for port, direction in cell["port_directions"].items():
                if direction == "output":
                    self._drivers.update(dict.fromkeys(cell["connections"][port], cell))
        for bits, word in inputs:
            self._store(tuple(bits), replace(word, stage=0))
            self.read(bits)

    def read(self, bits: Sequence[Bit], signed: bool = True, *, modulo: bool = False) -> AffineWord:
        """Return the number that some bits hold, or with ``modulo`` one that agrees with it in these bits.

        Raises AnalysisError if the number does not fit them, or is not affine in the inputs.
        """
        rest = list(bits)
        zeros = 0
        while rest and rest[0] == "0":
            rest.pop(0)
            zeros += 1
        if all(isinstance(bit, str) for bit in rest):
            value = _constant(rest, signed) << zeros
            return AffineWord(AffineForm(Fraction(value)), value, value)
        word = self._run(rest, signed, modulo)
        return word << zeros if zeros else word

    def _run(self, bits: list[Bit], signed: bool, modulo: bool) -> AffineWord:
        """Return the number of consecutive bits of one word, with an extension by zeros or by the sign."""
        first = bits[0]
        if first not in self._place:
            self._compute(first)
        source, start = self._place[first]
        count = 1
        while count < len(bits) and start + count < len(source) and bits[count] == source[start + count]:
            count += 1
        extension = set(bits[count:])
        if extension == {"0"}:
            signed = False
        elif extension and (extension != {bits[count - 1]} or not signed):
            raise AnalysisError(f"bits {bits} are no number of one word")
        word = self._shifted(source, start)
        least, most = (-(1 << (count - 1)), (1 << (count - 1)) - 1) if signed else (0, (1 << count) - 1)
        if (word.low < least or word.high > most) and not (modulo and not extension):
            raise AnalysisError(f"values from {word.low} to {word.high} in {count} bits, which hold {least} to {most}")
        return word

    def _shifted(self, source: tuple[Bit, ...], places: int) -> AffineWord:
        if not places:
            return self._words[source]
        if (source, places) not in self._cuts:
            self._cuts[source, places] = self._words[source].floor(places, f"{self._name}lost{len(self._cuts)}")
        return self._cuts[source, places]

    def _compute(self, bit: Bit) -> None:
        cell = self._drivers.get(bit)
        if cell is None:
            raise AnalysisError(f"net {bit} is neither an input of the path nor driven")
        kind, wires = cell["type"], cell["connections"]

        def operand(port: str) -> AffineWord:
            # An operand as wide as the result is needed modulo its width only: whether the result fits is checked later.
            signed = bool(int(cell["parameters"].get(f"{port}_SIGNED", "0"), 2))
            return self.read(wires[port], signed, modulo=len(wires[port]) == len(wires["Y"]))

        if kind in ("$add", "$sub"):
            a, b = operand("A"), operand("B")
            if a.form.terms and b.form.terms and a.stage != b.stage:
                raise AnalysisError(f"words of stages {a.stage} and {b.stage} meet")
            result, port = a + (b if kind == "$add" else -b), "Y"
        elif kind in ("$neg", "$pos"):
            a = operand("A")
            result, port = -a if kind == "$neg" else a, "Y"
        elif kind == "$mux" and wires["S"][0] in self._constants:
            chosen = wires["B" if self._constants[wires["S"][0]] else "A"]
            result, port = self.read(chosen, modulo=True), "Y"
        elif kind in ("$dff", "$dffe"):
            result, port = self.read(wires["D"]).delayed(), "Q"
        else:
            raise AnalysisError(f"a {kind} is no affine operation")
        self._store(tuple(wires[port]), result)

    def _store(self, bits: tuple[Bit, ...], word: AffineWord) -> None:
        self._words[bits] = word
        self._place.update({bit: (bits, place) for place, bit in enumerate(bits)})


def _constant(bits: Sequence[Bit], signed: bool) -> int:
    value = sum(1 << place for place, bit in enumerate(bits) if bit == "1")
    return value - (1 << len(bits)) if signed and bits and bits[-1] == "1" else value
