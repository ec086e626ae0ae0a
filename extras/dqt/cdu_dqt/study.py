"""A whole study: a table for one alpha, and every known table beside those found for many alphas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from actcodec.codecs.codec import JpegActCodec, JpegGmcCodec, check_s
from cdu_spec.dqt import Table
from cdu_spec.modes import Coder
from cdu_spec.reconstruction import point_of
from cdu_spec.rounding import Rounding
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown
from torch import Tensor

from cdu_dqt.coefficients import coefficients, histogram
from cdu_dqt.curves import RATES, Curves, Measure, check_alpha
from cdu_dqt.gmc_search import GmcBlocks, descend
from cdu_dqt.measure import RateBench, RatePoint
from cdu_dqt.optimizers import OPTIMIZERS, SEARCH, SGD, Sgd, search
from cdu_dqt.quantizer import DIV, ENTROPY, GMC, SHIFT, TableQuantizer

#: Tables of the paper that are measured with each kind; as shifts optL is optsL and optH is optsH.
PUBLISHED = {DIV: ("optL", "optH", "optsL", "optsH"), SHIFT: ("optsL", "optsH")}
#: Uniform tables that are measured with GMC.
UNIFORM = ("uniform-8", "uniform-16", "uniform-32", "uniform-64")
#: Tables of image quality that are measured; the curve through them is smooth.
IMAGES = tuple(f"image{quality}" for quality in (1, *range(5, 101, 5)))
#: Values of ``alpha / (1 - alpha)`` in the sweep, from hardly any bits to hardly any error.
ALPHAS = tuple(float(odds / (1 + odds)) for odds in np.geomspace(5e-4, 2, 25))
#: Values of S with which some of those alphas are measured too.
SCALES = (0.5, 0.7, 1.0, PUBLISHED_S, 1.4, 2.0)
_ALPHAS_PER_SCALE = ALPHAS[::3]
#: Values with which tables for GMC are searched.
_ALPHAS_OF_DESCENTS = ALPHAS[::2]


@dataclass(frozen=True)
class DqtSettings:
    """Settings of a search for a table. UserError for impossible settings.

    Parameters
    ----------
    alpha
        Weight of the error in the objective, 0..1.
    kind
        ``div`` or ``shift``.
    rate
        ``entropy``, ``zvc`` or ``gmc``; the last two for shifts only.
    optimizer
        ``search`` or ``sgd``, which excludes ``gmc``.
    rounding
        ``half_away`` or ``trunc``; None selects the default of the kind's codec.
    S
        Scale of SFPR; the default is JPEG-ACT's, with GMC too.
    rec
        Reconstruction point of shifts in steps; None selects that of codec jpeg-gmc with ``gmc``, else that of jpeg-act.
    """

    alpha: float
    kind: str = DIV
    rate: str = ENTROPY
    optimizer: str = SEARCH
    rounding: str | None = None
    S: float = PUBLISHED_S
    rec: float | None = None

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_s(self.S)
        if self.optimizer not in OPTIMIZERS:
            raise UserError(unknown("optimizer", self.optimizer, OPTIMIZERS))
        allowed = [rule.value for rule in Rounding]
        if self.rounding not in (None, *allowed):
            raise UserError(f"rounding = {self.rounding!r} is not allowed: use {' or '.join(allowed)}")
        if self.rate not in (*RATES, GMC):
            raise UserError(unknown("rate", self.rate, (*RATES, GMC)))
        if self.rate == GMC and self.optimizer != SEARCH:
            raise UserError(f"optimizer {self.optimizer!r} does not go with rate 'gmc', which has no slopes: use {SEARCH}")
        quantizer = self.quantizer  # refuses settings that exclude each other, as Measure does
        if self.rate != GMC:
            Measure(quantizer, self.rate)

    @property
    def point(self) -> int:
        """The reconstruction point in eighths of a step. UserError for an invalid point."""
        usual = JpegGmcCodec if self.rate == GMC else JpegActCodec
        return point_of(usual.rec if self.rec is None else self.rec)

    @property
    def quantizer(self) -> TableQuantizer:
        """Quantiser of the table. UserError for settings that exclude each other."""
        usual = self._as_set(self.kind)
        return usual if self.rounding is None else replace(usual, rounding=Rounding(self.rounding))

    @property
    def compared(self) -> tuple[TableQuantizer, ...]:
        """Quantisers of the codecs whose known and searched tables are measured, with their usual rounding.

        With ``gmc``, where every table costs a descent, only that of the table.
        """
        return (self.quantizer,) if self.rate == GMC else (TableQuantizer.usual(DIV), self._as_set(SHIFT))

    @property
    def roundings(self) -> tuple[Rounding, ...]:
        """Rounding rules whose tables are measured."""
        return (self.quantizer.rounding,) if self.rate == GMC else tuple(Rounding)

    @property
    def scales(self) -> tuple[float, ...]:
        """Values of S with which tables are searched."""
        return (self.S,) if self.rate == GMC else tuple(dict.fromkeys((self.S, *SCALES)))

    def _as_set(self, kind: str) -> TableQuantizer:
        coder = Coder.GMC if self.rate == GMC else Coder.ZVC
        return replace(TableQuantizer.usual(kind), point=self.point, coder=coder)


@dataclass(frozen=True)
class FoundTable:
    """The objective of a table on the activations of its search."""

    name: str
    objective: float
    rate: float  #: bits per coefficient
    distortion: float  #: mean squared error, units of SFPR's integers
    measured: float  #: the same error over the full path, with the transform's rounding and saturation
    seconds: float | None  #: duration of the search


@dataclass(frozen=True)
class MeasuredTable:
    """A table, measured on activations that were not used in a search."""

    name: str  #: name of a known table, or of the rate that was minimised
    kind: str
    rounding: str
    S: float
    alpha: float | None  #: for a searched table
    table: Table  #: steps of the table
    point: RatePoint


@dataclass(frozen=True)
class DqtStudy:
    """All results."""

    settings: DqtSettings
    table: Table
    found: list[FoundTable]
    measured: list[MeasuredTable]

    def known(self, name: str, kind: str, rounding: str) -> MeasuredTable:
        """Return a known table with the S of the settings."""
        wanted = (name, kind, rounding, self.settings.S)
        return next(one for one in self.measured if (one.name, one.kind, one.rounding, one.S) == wanted)

    def written(self, quantizer: TableQuantizer, S: float | None = None) -> list[MeasuredTable]:  # noqa: N803
        """Return the sweep for a codec's own rate; S is that of the settings by default."""
        return self.curve(quantizer.written, quantizer.kind, quantizer.rounding.value, self.settings.S if S is None else S)

    def curve(self, name: str | None, kind: str, rounding: str, S: float) -> list[MeasuredTable]:  # noqa: N803
        """Return the sweep over alpha that minimised ``name``, or without a name the tables of image quality, by bytes."""
        names = {name} if name else set(IMAGES)
        mine = [one for one in self.measured if one.name in names and (one.kind, one.rounding, one.S) == (kind, rounding, S)]
        return sorted(mine, key=lambda one: one.point.bytes_per_value)


def study(
    tensors: Sequence[Tensor],
    held_out: Sequence[Tensor],
    settings: DqtSettings,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> DqtStudy:
    """Search tables on ``tensors`` and measure them on ``held_out``: both as in :class:`~.measure.RateBench`.

    ``seed`` is that of SGD; ``progress`` receives the name of each part that begins.
    """
    progress("table")
    table, found = _one_table(tensors, settings, seed)
    measured = []
    for S in settings.scales:  # noqa: N806
        blocks, bench = coefficients(tensors, S), RateBench(held_out, S)
        counts = histogram(blocks)
        for quantizer, rate in _sweeps(settings, usual_only=S != settings.S):
            progress(f"{quantizer.kind}, {quantizer.rounding.value}, {rate}, S = {S:g}")
            if rate == GMC:
                swept = _descents(GmcBlocks.of(blocks, quantizer), _ALPHAS_OF_DESCENTS)
            else:
                swept = _searches(Curves.of(counts, Measure(quantizer, rate)), _ALPHAS_PER_SCALE if S != settings.S else ALPHAS)
            for alpha, steps in swept:
                where = (quantizer.kind, quantizer.rounding.value, S, alpha)
                measured.append(MeasuredTable(rate, *where, steps, bench(quantizer, steps)))
        if S == settings.S:
            for quantizer in _with_every_rounding(settings):
                progress(f"known tables, {quantizer.kind}, {quantizer.rounding.value}")
                measured += [_known(name, quantizer, bench, S) for name in (*known_tables(quantizer), *IMAGES)]
    return DqtStudy(settings, table, found, measured)


def known_tables(quantizer: TableQuantizer) -> tuple[str, ...]:
    """Return the names of the tables with which searched ones are compared."""
    return PUBLISHED[quantizer.kind] + (UNIFORM if quantizer.coder is Coder.GMC else ())


def _one_table(tensors: Sequence[Tensor], settings: DqtSettings, seed: int) -> tuple[Table, list[FoundTable]]:
    """Return the table of the settings, with both optimisers (``gmc``: one) and known tables on the same objective."""
    quantizer, alpha = settings.quantizer, settings.alpha
    blocks = coefficients(tensors, settings.S)
    objective: Curves | GmcBlocks
    start = time.perf_counter()
    if settings.rate == GMC:
        objective = GmcBlocks.of(blocks, quantizer)
        best = descend(objective, alpha, _starts(objective, alpha))
    else:
        measure = Measure(quantizer, settings.rate)
        objective = Curves.of(histogram(blocks), measure)
        best = search(objective, alpha)
    candidates: dict[str, tuple[Table, float | None]] = {SEARCH: (quantizer.table(best), time.perf_counter() - start)}
    if settings.rate != GMC:
        start = time.perf_counter()
        descended = Sgd(seed=seed)(blocks, measure, alpha)
        candidates[SGD] = quantizer.table(descended), time.perf_counter() - start
    candidates |= {name: (quantizer.steps_of(name), None) for name in known_tables(quantizer)}
    bench = RateBench(tensors, settings.S)
    found = []
    for name, (table, seconds) in candidates.items():
        rungs = quantizer.rungs(table)
        point = bench(quantizer, table)
        found.append(FoundTable(name, objective.objective(rungs, alpha), *objective.at(rungs), point.squared_error, seconds))
    return candidates[settings.optimizer][0], found


def _searches(curves: Curves, alphas: Sequence[float]) -> Iterator[tuple[float, Table]]:
    return ((alpha, curves.quantizer.table(search(curves, alpha))) for alpha in alphas)


def _descents(blocks: GmcBlocks, alphas: Sequence[float]) -> Iterator[tuple[float, Table]]:
    """Yield a descent for each alpha, which also starts from the table of the previous alpha."""
    before: list[Tensor] = []
    for alpha in alphas:
        before = [descend(blocks, alpha, [*_starts(blocks, alpha), *before])]
        yield alpha, blocks.quantizer.table(before[0])


def _starts(blocks: GmcBlocks, alpha: float) -> list[Tensor]:
    """Return the rungs of the known tables, and those of the table with the best entropy for each coefficient."""
    quantizer = blocks.quantizer
    return [*(quantizer.rungs(quantizer.steps_of(name)) for name in known_tables(quantizer)), search(blocks.curves, alpha)]


def _known(name: str, quantizer: TableQuantizer, bench: RateBench, S: float) -> MeasuredTable:  # noqa: N803
    table = quantizer.steps_of(name)
    return MeasuredTable(name, quantizer.kind, quantizer.rounding.value, S, None, table, bench(quantizer, table))


def _with_every_rounding(settings: DqtSettings) -> Iterator[TableQuantizer]:
    return (replace(quantizer, rounding=rounding) for quantizer in settings.compared for rounding in settings.roundings)


def _sweeps(settings: DqtSettings, *, usual_only: bool) -> Iterator[tuple[TableQuantizer, str]]:
    """Yield the rate that each codec writes, with every rounding rule, and for shifts entropy too; or only the codec's own
    rule.
    """
    if usual_only:
        yield from ((quantizer, quantizer.written) for quantizer in settings.compared)
    else:
        for quantizer in _with_every_rounding(settings):
            yield from ((quantizer, rate) for rate in dict.fromkeys((quantizer.written, ENTROPY)))
