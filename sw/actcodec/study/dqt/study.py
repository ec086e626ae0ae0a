"""A whole study: a table for one alpha, and every known table beside those found for many alphas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from cdu_spec.dqt import Table
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import DEFAULT_S
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs.codec import check_s
from actcodec.study.dqt.coefficients import coefficients, histogram
from actcodec.study.dqt.curves import ENTROPY, WRITTEN, Curves, Measure, check_alpha
from actcodec.study.dqt.measure import Bench, Point
from actcodec.study.dqt.optimizers import OPTIMIZERS, SEARCH, SGD, Sgd, search
from actcodec.study.dqt.quantizer import DIV, KINDS, SHIFT, Quantizer

#: Tables of the paper that are measured with each kind; as shifts optL is optsL and optH is optsH.
PUBLISHED = {DIV: ("optL", "optH", "optsL", "optsH"), SHIFT: ("optsL", "optsH")}
#: Tables of image quality that are measured; the curve through them is smooth.
IMAGES = tuple(f"image{quality}" for quality in (1, *range(5, 101, 5)))
#: Of the sweep: ``alpha / (1 - alpha)`` from hardly any bits to hardly any error.
ALPHAS = tuple(float(odds / (1 + odds)) for odds in np.geomspace(5e-4, 2, 25))
#: Values of S with which some of those alphas are measured too.
SCALES = (0.5, 0.7, 1.0, DEFAULT_S, 1.4, 2.0)
_ALPHAS_PER_SCALE = ALPHAS[::3]


@dataclass(frozen=True)
class Settings:
    """Which table is looked for. UserError for impossible settings.

    Parameters
    ----------
    alpha
        Weight of the error in the objective, 0..1.
    kind
        ``div`` or ``shift``.
    rate
        ``entropy`` or ``zvc``.
    optimizer
        ``search`` or ``sgd``.
    rounding
        ``half_away`` or ``trunc``; None is what the kind's codec does by default.
    S
        Of SFPR.
    """

    alpha: float
    kind: str = DIV
    rate: str = ENTROPY
    optimizer: str = SEARCH
    rounding: str | None = None
    S: float = DEFAULT_S

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_s(self.S)
        if self.optimizer not in OPTIMIZERS:
            raise UserError(f"unknown optimizer {self.optimizer!r}: use {' or '.join(OPTIMIZERS)}")
        allowed = [rule.value for rule in Rounding]
        if self.rounding not in (None, *allowed):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {' or '.join(allowed)}")
        Measure(Quantizer.usual(self.kind), self.rate)  # refuses what does not go together

    @property
    def measure(self) -> Measure:
        """Quantiser and rate."""
        usual = Quantizer.usual(self.kind)
        return Measure(usual if self.rounding is None else Quantizer(self.kind, Rounding(self.rounding)), self.rate)


@dataclass(frozen=True)
class Found:
    """What a table comes to in the objective, on the activations that it was looked for with."""

    name: str
    objective: float
    rate: float  #: bits per coefficient
    distortion: float  #: mean squared error, units of SFPR's integers
    measured: float  #: the same error on the whole way, with the transform's rounding and saturation
    seconds: float | None  #: that finding it took


@dataclass(frozen=True)
class Measured:
    """A table on activations that no table was looked for with."""

    name: str  #: of a known table, or what was made small (``entropy``, ``zvc``)
    kind: str
    rounding: str
    S: float
    alpha: float | None  #: of a table that was looked for
    table: Table  #: its steps
    point: Point


@dataclass(frozen=True)
class Study:
    """All results."""

    settings: Settings
    table: Table
    found: list[Found]
    measured: list[Measured]

    def known(self, name: str, kind: str, rounding: str) -> Measured:
        """A known table with the S of the settings."""
        wanted = (name, kind, rounding, self.settings.S)
        return next(one for one in self.measured if (one.name, one.kind, one.rounding, one.S) == wanted)

    def curve(self, name: str | None, kind: str, rounding: str, S: float) -> list[Measured]:  # noqa: N803
        """The sweep over alpha that made ``name`` small, or without a name the tables of image quality; in order of bytes."""
        names = {name} if name else set(IMAGES)
        mine = [one for one in self.measured if one.name in names and (one.kind, one.rounding, one.S) == (kind, rounding, S)]
        return sorted(mine, key=lambda one: one.point.bytes_per_value)


def study(
    tensors: Sequence[Tensor],
    held_out: Sequence[Tensor],
    settings: Settings,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> Study:
    """Look for tables on ``tensors``, measure them on ``held_out`` (as :class:`~actcodec.study.dqt.measure.Bench` takes them).

    ``seed`` is that of SGD; ``progress`` is told what begins.
    """
    progress("table")
    table, found = _one_table(tensors, settings, seed)
    measured = []
    for S in dict.fromkeys((settings.S, *SCALES)):  # noqa: N806
        counts, bench = histogram(coefficients(tensors, S)), Bench(held_out, S)
        for measure in _measures(usual_only=S != settings.S):
            progress(f"{measure.quantizer.kind}, {measure.quantizer.rounding.value}, {measure.rate}, S = {S:g}")
            measured += _sweep(counts, bench, measure, S, _ALPHAS_PER_SCALE if S != settings.S else ALPHAS)
        if S == settings.S:
            for quantizer in _quantizers():
                progress(f"known tables, {quantizer.kind}, {quantizer.rounding.value}")
                measured += [_known(name, quantizer, bench, S) for name in (*PUBLISHED[quantizer.kind], *IMAGES)]
    return Study(settings, table, found, measured)


def _one_table(tensors: Sequence[Tensor], settings: Settings, seed: int) -> tuple[Table, list[Found]]:
    """The table of the settings, and both optimisers and the published tables on the same objective."""
    measure, alpha = settings.measure, settings.alpha
    quantizer = measure.quantizer
    blocks = coefficients(tensors, settings.S)
    start = time.perf_counter()
    curves = Curves.of(histogram(blocks), measure)
    best = search(curves, alpha)
    middle = time.perf_counter()
    descended = Sgd(seed=seed)(blocks, measure, alpha)
    end = time.perf_counter()
    candidates: dict[str, tuple[Table, float | None]] = {
        SEARCH: (quantizer.table(best), middle - start),
        SGD: (quantizer.table(descended), end - middle),
    }
    candidates |= {name: (quantizer.steps_of(name), None) for name in PUBLISHED[quantizer.kind]}
    bench = Bench(tensors, settings.S)
    found = []
    for name, (table, seconds) in candidates.items():
        rungs = quantizer.rungs(table)
        point = bench(quantizer, table)
        found.append(Found(name, curves.objective(rungs, alpha), *curves.at(rungs), point.squared_error, seconds))
    return candidates[settings.optimizer][0], found


def _sweep(counts: Tensor, bench: Bench, measure: Measure, S: float, alphas: Sequence[float]) -> list[Measured]:  # noqa: N803
    curves = Curves.of(counts, measure)
    quantizer = measure.quantizer
    found = []
    for alpha in alphas:
        table = quantizer.table(search(curves, alpha))
        point = bench(quantizer, table)
        found.append(Measured(measure.rate, quantizer.kind, quantizer.rounding.value, S, alpha, table, point))
    return found


def _known(name: str, quantizer: Quantizer, bench: Bench, S: float) -> Measured:  # noqa: N803
    table = quantizer.steps_of(name)
    return Measured(name, quantizer.kind, quantizer.rounding.value, S, None, table, bench(quantizer, table))


def _quantizers() -> Iterator[Quantizer]:
    return (Quantizer(kind, rounding) for kind in KINDS for rounding in Rounding)


def _measures(*, usual_only: bool) -> Iterator[Measure]:
    """What each codec writes, with every rounding rule, and for shifts entropy too; or only with the codec's own rule."""
    for quantizer in _quantizers():
        written = WRITTEN[quantizer.kind]
        if not usual_only:
            yield from (Measure(quantizer, rate) for rate in dict.fromkeys((written, ENTROPY)))
        elif quantizer == Quantizer.usual(quantizer.kind):
            yield Measure(quantizer, written)
