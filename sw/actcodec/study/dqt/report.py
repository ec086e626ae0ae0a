"""report.md and results.json of a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from cdu_spec.geometry import BLOCK_SIDE

from actcodec.study.dqt.comparison import comparisons, errors_at, nearest
from actcodec.study.dqt.curves import WRITTEN, ZVC
from actcodec.study.dqt.quantizer import KINDS, Quantizer
from actcodec.study.dqt.study import PUBLISHED, Study

#: Diagonals (sum of both frequencies) that make a band, the DC entry left out.
_BANDS = {"low (1-4)": range(1, 5), "middle (5-9)": range(5, 10), "high (10-14)": range(10, 15)}


def results(study: Study) -> dict[str, Any]:
    """Plain values: everything that was found and measured."""
    return {
        "settings": asdict(study.settings) | {"rounding": study.settings.measure.quantizer.rounding.value},
        "table": list(study.table),
        "found": [asdict(one) for one in study.found],
        "comparisons": [asdict(one) for one in comparisons(study)],
        "measured": [asdict(one) for one in study.measured],
    }


def markdown(command: str, about: Sequence[str], study: Study) -> str:
    """The report; ``about`` are sentences on the activations."""
    settings = study.settings
    quantizer = settings.measure.quantizer
    lines = [
        f"# DQT optimisation: {settings.kind}, alpha = {settings.alpha:g}",
        "",
        f"Written by `{command}`.",
        "",
        *about,
        "",
        "Objective: (1 - alpha) * rate + alpha * error, means over the 64 coefficients. Rate: "
        f"{'bits of ZVC' if settings.rate == ZVC else 'bits of entropy of each coefficient'}; error: mean squared error "
        f"in units of SFPR's integers. S = {settings.S:g}, rounding {quantizer.rounding.value}, DC entry fixed. table.json is "
        f"that of `{settings.optimizer}`:",
        "",
        "```",
        *_grid(study.table),
        "```",
        "",
        "## The objective on the activations that the table was looked for with",
        "",
        "Error as the objective has it (Parseval), and measured on the whole way with the rounding and saturation of the "
        "integer transform.",
        "",
        "| table | objective | rate, bits | error | error measured | seconds |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.objective:.4f} | {one.rate:.3f} | {one.distortion:.3f} | {one.measured:.3f} | "
        + ("-" if one.seconds is None else f"{one.seconds:.1f}")
        + " |"
        for one in study.found
    ]
    lines += [
        "",
        "## Known tables against searched ones, on the held-out activations",
        "",
        "Searched tables are interpolated over alpha (logarithmic axes); their rate is entropy for jpeg-base and ZVC for "
        "jpeg-act. Bytes are those of whole streams; error is ||x - x'|| / ||x||, mean over the tensors.",
        "",
        "| codec | table | bytes/value | error | alpha at equal bytes | its error | change of error | bytes/value at equal "
        "error | change of bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in comparisons(study):
        cells = [Quantizer.usual(one.kind).codec, one.table, f"{one.bytes_per_value:.4f}", f"{one.relative_error:.4f}"]
        cells += [_number(one.alpha, ".4f"), _number(one.error_at_equal_bytes, ".4f")]
        cells += [_change(one.error_at_equal_bytes, one.relative_error), _number(one.bytes_at_equal_error, ".4f")]
        lines.append("| " + " | ".join([*cells, _change(one.bytes_at_equal_error, one.bytes_per_value)]) + " |")
    lines += [
        "",
        "![Rate and distortion](rate_distortion.png)",
        "",
        *_bands(study),
        "",
        *_scales(study),
        "",
        *_sweeps(study),
    ]
    return "\n".join(lines) + "\n"


def _grid(table: Sequence[int]) -> list[str]:
    rows = (table[begin : begin + BLOCK_SIDE] for begin in range(0, len(table), BLOCK_SIDE))
    return [" ".join(f"{step:3}" for step in row) for row in rows]


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _change(found: float | None, known: float) -> str:
    return "-" if found is None else f"{100 * (found / known - 1):+.1f} %"


def _bands(study: Study) -> list[str]:
    lines = [
        "## Steps by frequency",
        "",
        "Mean step of the entries of some diagonals, of the published tables and of the searched table of the sweep that needs "
        "nearly as many bytes.",
        "",
        "| codec | table | bytes/value | " + " | ".join(_BANDS) + " |",
        "|---|---|---|" + "---|" * len(_BANDS),
    ]
    for kind in KINDS:
        usual = Quantizer.usual(kind)
        sweep = study.curve(WRITTEN[kind], kind, usual.rounding.value, study.settings.S)
        for name in PUBLISHED[kind]:
            known = study.known(name, kind, usual.rounding.value)
            near = nearest(known.point.bytes_per_value, sweep)
            for label, one in ((name, known), (f"searched, alpha = {near.alpha:.4f}", near)):
                steps = [
                    mean(step for place, step in enumerate(one.table) if sum(divmod(place, BLOCK_SIDE)) in band)
                    for band in _BANDS.values()
                ]
                cells = [usual.codec, label, f"{one.point.bytes_per_value:.4f}", *(f"{step:.1f}" for step in steps)]
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def _scales(study: Study) -> list[str]:
    lines = [
        "## S",
        "",
        "Error of searched tables at the bytes of the published tables with the S of the settings.",
        "",
    ]
    for kind in KINDS:
        usual = Quantizer.usual(kind)
        known = [study.known(name, kind, usual.rounding.value) for name in PUBLISHED[kind]]
        lines += [
            f"| {usual.codec}, S | " + " | ".join(f"at {one.name} ({one.point.bytes_per_value:.3f})" for one in known) + " |",
            "|---|" + "---|" * len(known),
        ]
        for S in sorted({one.S for one in study.measured}):  # noqa: N806
            sweep = study.curve(WRITTEN[kind], kind, usual.rounding.value, S)
            cells = [_number(errors_at(one.point.bytes_per_value, sweep), ".4f") for one in known]
            lines.append(f"| {S:g} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines[:-1]


def _sweeps(study: Study) -> list[str]:
    kinds = [(kind, Quantizer.usual(kind)) for kind in KINDS]
    lines = [
        "## Searched tables over alpha, on the held-out activations",
        "",
        "| alpha | " + " | ".join(f"{usual.codec}, bytes/value | error" for _, usual in kinds) + " |",
        "|---|" + "---|---|" * len(kinds),
    ]
    sweeps = [study.curve(WRITTEN[kind], kind, usual.rounding.value, study.settings.S) for kind, usual in kinds]
    for alpha in sorted({one.alpha for one in sweeps[0] if one.alpha is not None}):
        points = [one.point for sweep in sweeps for one in sweep if one.alpha == alpha]
        cells = [f"{point.bytes_per_value:.4f} | {point.relative_error:.4f}" for point in points]
        lines.append(f"| {alpha:.4f} | " + " | ".join(cells) + " |")
    return lines
