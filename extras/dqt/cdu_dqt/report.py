"""The report of a study: report.md and results.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from cdu_spec.geometry import BLOCK_SIDE
from cdu_spec.reconstruction import STEP_POINTS
from cdu_tools.report import Page, Table

from cdu_dqt.comparison import comparisons, errors_at, nearest
from cdu_dqt.quantizer import ENTROPY, GMC, ZVC
from cdu_dqt.study import DqtStudy, known_tables

#: Diagonals (sum of both frequencies) of a band, without the DC entry.
_RATES = {ENTROPY: "bits of entropy of each coefficient", ZVC: "bits of ZVC", GMC: "bits of GMC, of a sample of blocks"}
_BANDS = {"low (1-4)": range(1, 5), "middle (5-9)": range(5, 10), "high (10-14)": range(10, 15)}


def results(study: DqtStudy) -> dict[str, Any]:
    """Return plain values with all tables and measurements."""
    return {
        "settings": asdict(study.settings) | _resolved(study),
        "table": list(study.table),
        "found": [asdict(one) for one in study.found],
        "comparisons": [asdict(one) for one in comparisons(study)],
        "measured": [asdict(one) for one in study.measured],
    }


def _resolved(study: DqtStudy) -> dict[str, Any]:
    """Return the settings with defaults filled in."""
    quantizer = study.settings.quantizer
    return {"rounding": quantizer.rounding.value, "rec": quantizer.point / STEP_POINTS}


def markdown(command: str, about: Sequence[str], study: DqtStudy) -> str:
    """Return the report; ``about`` are sentences on the activations."""
    settings = study.settings
    quantizer = settings.quantizer
    rates = " and ".join(f"{one.written} for {one.codec}" for one in settings.compared)
    parts: list[str | Table] = [
        f"Written by `{command}`.",
        "\n".join(about),
        "Objective: (1 - alpha) * rate + alpha * error, means over the 64 coefficients. Rate: "
        f"{_RATES[settings.rate]}; error: mean squared error in units of SFPR's integers. S = {settings.S:g}, rounding "
        f"{quantizer.rounding.value}, reconstruction point {quantizer.point / STEP_POINTS:g}, DC entry "
        f"{'8 at least' if settings.rate == GMC else 'fixed'}. table.json is that of `{settings.optimizer}`:",
        "\n".join(["```", *_grid(study.table), "```"]),
        "## The objective on the activations that the table was looked for with",
        "Error as the objective has it (Parseval), and measured on the whole way with the rounding and saturation of the "
        "integer transform.",
        _found(study),
        "## Known tables against searched ones, on the held-out activations",
        f"Searched tables are interpolated over alpha (logarithmic axes); their rate is {rates}. Bytes are those of whole "
        "streams; error is ||x - x'|| / ||x||, mean over the tensors.",
        _known(study),
        "![Rate and distortion](rate_distortion.png)",
        "## Steps by frequency",
        "Mean step of the entries of some diagonals, of the published tables and of the searched table of the sweep that needs "
        "nearly as many bytes.",
        _bands(study),
        *_scales(study),
        "## Searched tables over alpha, on the held-out activations",
        _sweeps(study),
    ]
    return Page(f"DQT optimisation: {settings.kind}, alpha = {settings.alpha:g}", parts).markdown()


def _found(study: DqtStudy) -> Table:
    rows = []
    for one in study.found:
        figures = [f"{one.objective:.4f}", f"{one.rate:.3f}", f"{one.distortion:.3f}", f"{one.measured:.3f}"]
        rows.append([one.name, *figures, _number(one.seconds, ".1f")])
    return Table(["table", "objective", "rate, bits", "error", "error measured", "seconds"], rows)


def _known(study: DqtStudy) -> Table:
    head = ["codec", "table", "bytes/value", "error", "alpha at equal bytes", "its error", "change of error"]
    rows = []
    for one in comparisons(study):
        cells = [one.codec, one.table, f"{one.bytes_per_value:.4f}", f"{one.relative_error:.4f}"]
        cells += [_number(one.alpha, ".4f"), _number(one.error_at_equal_bytes, ".4f")]
        cells += [_change(one.error_at_equal_bytes, one.relative_error), _number(one.bytes_at_equal_error, ".4f")]
        rows.append([*cells, _change(one.bytes_at_equal_error, one.bytes_per_value)])
    return Table([*head, "bytes/value at equal error", "change of bytes"], rows)


def _grid(table: Sequence[int]) -> list[str]:
    rows = (table[begin : begin + BLOCK_SIDE] for begin in range(0, len(table), BLOCK_SIDE))
    return [" ".join(f"{step:3}" for step in row) for row in rows]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _change(found: float | None, known: float) -> str:
    return "-" if found is None else f"{100 * (found / known - 1):+.1f} %"


def _bands(study: DqtStudy) -> Table:
    rows = []
    for usual in study.settings.compared:
        sweep = study.written(usual)
        for name in known_tables(usual):
            known = study.known(name, usual.kind, usual.rounding.value)
            near = nearest(known.point.bytes_per_value, sweep)
            for label, one in ((name, known), (f"searched, alpha = {near.alpha:.4f}", near)):
                steps = [
                    mean(step for place, step in enumerate(one.table) if sum(divmod(place, BLOCK_SIDE)) in band)
                    for band in _BANDS.values()
                ]
                rows.append([usual.codec, label, f"{one.point.bytes_per_value:.4f}", *(f"{step:.1f}" for step in steps)])
    return Table(["codec", "table", "bytes/value", *_BANDS], rows)


def _scales(study: DqtStudy) -> Iterator[str | Table]:
    """Yield a table per codec, a row per S; nothing if S is always that of the settings."""
    if len(study.settings.scales) == 1:
        return
    yield "## S"
    yield "Error of searched tables at the bytes of the published tables with the S of the settings."
    for usual in study.settings.compared:
        known = [study.known(name, usual.kind, usual.rounding.value) for name in known_tables(usual)]
        rows = []
        for S in sorted(study.settings.scales):  # noqa: N806
            sweep = study.written(usual, S)
            rows.append([f"{S:g}", *(_number(errors_at(one.point.bytes_per_value, sweep), ".4f") for one in known)])
        yield Table([f"{usual.codec}, S", *(f"at {one.name} ({one.point.bytes_per_value:.3f})" for one in known)], rows)


def _sweeps(study: DqtStudy) -> Table:
    sweeps = [study.written(usual) for usual in study.settings.compared]
    rows = []
    for alpha in sorted({one.alpha for one in sweeps[0] if one.alpha is not None}):
        points = [one.point for sweep in sweeps for one in sweep if one.alpha == alpha]
        figures = (f"{figure:.4f}" for point in points for figure in (point.bytes_per_value, point.relative_error))
        rows.append([f"{alpha:.4f}", *figures])
    head = [name for usual in study.settings.compared for name in (f"{usual.codec}, bytes/value", "error")]
    return Table(["alpha", *head], rows)
