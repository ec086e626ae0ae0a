"""Tables of docs/methods/mx.md on other libraries: our column is computed, theirs are the values of findings/*.sh."""

import csv
import re
from pathlib import Path

import pytest
import torch
from actcodec.golden import mx
from cdu_spec.mx import MX_FORMATS, SCALE_BIAS, SCALE_NAN, ScaleRule

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "methods" / "mx.md"
SECTION = PAGE.read_text(encoding="utf-8").partition("## What others make of the same numbers")[2].partition("\n## ")[0]
#: Scripts by the heads of their columns, with the word before a row for torchao and gfloat.
SCRIPTS = {
    "torch": "torch_scales",
    "ml_dtypes": "ml_dtypes_scales",
    "JAX": "jax_scales",
    "onnx": "onnx_scales",
    "gfloat": "gfloat_scales",
    "Triton, interpreted": "triton_interpreter_e4m3",
}
BLOCK_SCRIPTS = {
    "torchao FLOOR": ("torchao_small_blocks", "FLOOR"),
    "torchao RCEIL": ("torchao_small_blocks", "RCEIL"),
    "gfloat": ("gfloat_small_blocks", "amax"),
}


def table(name):
    """Return a table beside the page by the first cell of each row: cells by the heads of their columns."""
    heads, *rows = csv.reader((PAGE.parent / f"{name}.csv").read_text(encoding="utf-8").splitlines())
    return {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in rows}


NUMBERS, BLOCKS = table("mx_numbers"), table("mx_small_blocks")


def seen(script):
    """Return the values that a script expects, by the words before each colon; words in brackets are left out."""
    text = (ROOT / "findings" / f"{script}.sh").read_text(encoding="utf-8")
    (lines,) = re.findall(r"<<'SEEN'\n(.*?)SEEN\n", text, re.DOTALL)
    return {name: value.partition(" ")[0] for name, value in (line.split(": ") for line in lines.splitlines())}


def number(text):
    """Return a number as the page writes it."""
    factor, _, power = text.rpartition(" * ")
    base, caret, exponent = power.partition("^")
    return float(factor or 1) * (float(base) ** int(exponent) if caret else float(power))


def coded(value, kind, rule):
    """Return the block of a number and 31 zeros: scale byte, first element, and the decoded number."""
    block = torch.zeros(1, 32)
    block[0, 0] = value
    made = mx.encode(block, MX_FORMATS[kind], ScaleRule(rule))
    scales, codes = mx.without_scales(made, MX_FORMATS[kind])
    return int(scales[0]), float(mx.numbers_of(codes, MX_FORMATS[kind])[0, 0]), float(mx.decode(made, MX_FORMATS[kind])[0, 0])


@pytest.mark.parametrize("name", NUMBERS)
def test_scales_and_elements_are_ours(name):
    kind, _, text = name.partition(" of ")
    scale, element, _ = coded(number(text), {"E8M0": "mxint8", "E4M3": "mxfp8-e4m3"}[kind], "floor")
    shown = f"2^{scale - SCALE_BIAS}" if kind == "E8M0" else f"{element:g}"
    assert NUMBERS[name]["here"] == ("NaN" if scale == SCALE_NAN else shown)


@pytest.mark.parametrize("rule", ["floor", "rceil"])
@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_ours(name, rule):
    assert BLOCKS[name][f"here, {rule}"] == f"{coded(number(name), 'mxfp8-e4m3', rule)[2] / number(name):g}"


@pytest.mark.parametrize("column", SCRIPTS)
def test_numbers_are_what_scripts_expect(column):
    expected = seen(SCRIPTS[column])
    for name, cells in NUMBERS.items():
        assert cells[column] == expected.get(name, "-"), name
    assert set(expected) - {"E4M3 of 7.9"} <= set(NUMBERS)


@pytest.mark.parametrize("column", BLOCK_SCRIPTS)
def test_blocks_are_what_scripts_expect(column):
    script, word = BLOCK_SCRIPTS[column]
    expected = {name.removeprefix(f"{word} of "): value for name, value in seen(script).items() if name.startswith(word)}
    assert {name: cells[column] for name, cells in BLOCKS.items()} == expected


def test_the_page_shows_rows_of_the_table():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\| E\d.*$", SECTION, re.MULTILINE)]
    assert rows
    assert [[row[0], *NUMBERS[row[0]].values()] for row in rows] == rows


def test_the_page_names_every_script_of_its_columns():
    for script in {*SCRIPTS.values(), *(script for script, _ in BLOCK_SCRIPTS.values()), "triton_interpreter_e5m2"}:
        assert f"`{script}.sh`" in SECTION
