"""The glossary explains the abbreviations of the manual, in few words."""

import re

import pytest
from cdu_spec.channel_block import CHANNEL
from cdu_spec.dma import DMA_CHANNEL
from cdu_spec.registers import GLOBAL
from manual_pages import DOCS, HOOKS, page_text

GLOSSARY = page_text("reference/glossary.md")
TERMS = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", GLOSSARY, re.MULTILINE)
#: Registers and a command to the unit, which have pages of their own, and abbreviations that a reader knows from elsewhere.
REGISTERS = {register.name for register in (*GLOBAL, *CHANNEL, *DMA_CHANNEL)} | {"START"}
KNOWN = {"CPU", "CUDA", "FPGA", "GPU", "IEEE", "ID", "IP", "JPEG", "JSON", "NAME", "NAND", "RAM", "RISC", "SLVERR", "TOML"}
NAMES = {"ASAP7", "BERT", "CIFAR", "CNN", "ECP5", "GELU", "GPT", "LFE5U", "RNN", "VDSR", "VGG"}


def abbreviations(text):
    """Return the words in capitals of a page, without code, comments and targets of links."""
    text = re.sub(r"<!--.*?-->|^(```|~~~).*?^\1|^    .*$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "", text))
    return set(re.findall(r"(?<![\w.-])[A-Z][A-Z0-9]*[A-Z][A-Z0-9]*(?!\w)", text))


def test_the_glossary_is_short_and_names_a_word_once():
    assert len(GLOSSARY.split()) <= 600
    words = [word for term, _ in TERMS for word in term.split(", ")]
    assert len(words) > 50
    assert len(set(words)) == len(words)


def test_abbreviations_of_three_pages_are_explained():
    pages = [abbreviations(HOOKS.ANCHOR.sub("", page.read_text(encoding="utf-8"))) for page in DOCS.rglob("*.md")]
    common = {word for page in pages for word in page if sum(word in other for other in pages) >= 3}
    explained = abbreviations(GLOSSARY)
    assert common - explained - REGISTERS - KNOWN - NAMES == set()
    assert not explained & (KNOWN | NAMES) - {"JPEG", "NAND"}


def test_what_is_an_abbreviation():
    assert abbreviations("# A GE of [BRC](X.md) `NO` in JPEG-ACT, AXI4-Lite; A b\n\n    NO\n```\nNO\n```\n<!-- NO -->") == {
        "GE",
        "BRC",
        "JPEG",
        "AXI4",
    }


@pytest.mark.parametrize(("term", "meaning"), TERMS)
def test_a_row_explains(term, meaning):
    assert not meaning.endswith(".")
    assert meaning.split()[0] != term
