"""The pages: every link leads somewhere, no picture is there twice, and long tables stand in files beside them."""

import csv
import hashlib
import re
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])
PICTURES = (".png", ".svg", ".jpg", ".gif")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
INLINE = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", re.MULTILINE)
HTML = re.compile(r"<(?:img|a)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$", re.MULTILINE)
NAMED = re.compile(r"<a\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")


def links(text):
    """Targets of the links and pictures of a page that are not on other machines."""
    text = FENCE.sub("", text)
    found = REFERENCE.findall(text) + HTML.findall(text) + INLINE.findall(CODE.sub("code", text))
    return [target for target in found if not re.match(r"[a-z][a-z+.-]*:", target, re.IGNORECASE)]


def anchors(text):
    """Names of the headings as a forge makes them, and those that a page gives itself."""
    seen = defaultdict(int)
    found = set(NAMED.findall(text))
    for heading in HEADING.findall(FENCE.sub("", text)):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    broken = []
    for target in links(page.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        other = (page.parent / unquote(file)).resolve() if file else page
        there = other.exists() and other.is_relative_to(ROOT)
        if not there or (
            anchor and other.suffix == ".md" and unquote(anchor) not in anchors(other.read_text(encoding="utf-8"))
        ):
            broken.append(target)
    assert not broken


def stray(text):
    """Lines that look like the beginning of a list or table in the middle of a paragraph, where no reader begins one."""
    found = []
    for block in re.split(r"\n\s*\n", FENCE.sub("", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))):
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith(("#", "    "))]
        begins = [re.match(r"([-*]|\d+\.) |\|", line) for line in lines]
        found += [] if not lines or begins[0] else [line for line, one in zip(lines, begins, strict=True) if one]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_of_a_paragraph_looks_like_a_list(page):
    assert stray(page.read_text(encoding="utf-8")) == []


def test_every_picture_is_there_once_and_shown():
    kept = [path for path in (ROOT / "docs").rglob("*") if path.suffix in PICTURES]
    by_content = defaultdict(list)
    for path in kept:
        by_content[hashlib.sha256(path.read_bytes()).hexdigest()].append(path.name)
    assert [names for names in by_content.values() if len(names) > 1] == []
    shown = {(page.parent / unquote(target)).resolve() for page in PAGES for target in links(page.read_text(encoding="utf-8"))}
    assert [path.name for path in kept if path not in shown] == []


def test_what_is_a_link():
    text = '[a](b.md#c) `[no](x)` ![d [e]](<f.png>) [g][h]\n```\n[no](y)\n```\n[h]: i.md\n<img src="j.png"> <https://k> [l](http://m)'
    assert sorted(links(text)) == ["b.md#c", "f.png", "i.md", "j.png"]
    assert anchors("# A `b`: c, d\n## A `b`: c, d\n```\n# no\n```\n### [x](y.md)-Z") == {"a-b-c-d", "a-b-c-d-1", "x-z"}


def test_what_is_stray():
    assert stray("# A\n- a\n  b\n- c\n\n1. a\n2. b\n\n| a |\n\na\n- b) c\n\n```\na\n- b\n```") == ["- b) c"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_merge_is_left_open(page):
    assert not re.search(r"^(<{7} |={7}$|>{7} )", page.read_text(encoding="utf-8"), re.MULTILINE)


#: Folders of the repository whose files pages name.
FOLDERS = ("sw", "hw", "verif", "synth", "extras", "tests", "docs", "examples", "benchmarks", "findings")
#: Packages, by the folder that each lies in.
PACKAGES = {
    path.parent.name: path.parent.parent for top in (*FOLDERS, "extras/*") for path in ROOT.glob(f"{top}/*/__init__.py")
}
#: Files that a reader is to write.
TO_WRITE = {"sw/actcodec/codecs/baselines/minmax_codec.py", "sw/actcodec/policies/minmax.py"}
NAMED_PATH = re.compile(r"^[\w.-]+(?:/[\w.*-]+)+/?$")


def paths(text):
    """Files and folders of the repository that a page names in code, commands included."""
    words = [word.strip("(),:;\"'") for code in CODE.findall(FENCE.sub("", text)) for word in code.strip("`").split()]
    words += [word for line in re.findall(r"^    (?:\$ )?((?:python|pytest) .*)$", text, re.MULTILINE) for word in line.split()]
    tops = {*FOLDERS, *PACKAGES}
    return {
        word.partition("::")[0] for word in words if NAMED_PATH.match(word.partition("::")[0]) and word.split("/")[0] in tops
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_of_code_are_there(page):
    missing = []
    for path in sorted(paths(page.read_text(encoding="utf-8")) - TO_WRITE):
        base = ROOT if path.split("/")[0] in FOLDERS else PACKAGES[path.split("/")[0]]
        if not list(base.glob(path.rstrip("/"))):
            missing.append(path)
    assert not missing


EVIDENCE = ROOT / "docs" / "evidence"
SOURCES = (".py", ".sv", ".toml", ".sh")
#: Rows of the longest table on a page of evidence.
ROWS = 20


def source_names(text):
    """Names of source files, without a folder, in the code of a page."""
    words = [word.strip("(),:;\"'") for code in CODE.findall(FENCE.sub("", text)) for word in code.strip("`").split()]
    return {word for word in words if "/" not in word and word.endswith(SOURCES) and re.match(r"\w+\.", word)}


@pytest.mark.parametrize("page", sorted(EVIDENCE.glob("*.md")), ids=lambda page: page.name)
def test_source_files_that_evidence_names_are_there(page):
    there = {path.name for top in FOLDERS for path in (ROOT / top).rglob("*") if path.suffix in SOURCES}
    assert source_names(page.read_text(encoding="utf-8")) <= there


def tables(text):
    """Rows of each table of a page, cells without marks of code and emphasis."""
    found = re.findall(r"(?:^\|.*\n?)+", FENCE.sub("", text), re.MULTILINE)
    return [[[cell.strip(" `*") for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in found]


@pytest.mark.parametrize("page", sorted(EVIDENCE.glob("*.md")), ids=lambda page: page.name)
def test_tables_of_evidence_are_short(page):
    assert max((len(rows) - 2 for rows in tables(page.read_text(encoding="utf-8"))), default=0) <= ROWS


def test_every_table_of_evidence_is_linked_and_complete():
    linked = {(page.parent / unquote(target)).resolve() for page in PAGES for target in links(page.read_text(encoding="utf-8"))}
    for path in EVIDENCE.glob("*.csv"):
        assert path in linked, path.name
        header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
        assert rows, path.name
        assert {len(row) for row in rows} == {len(header)}, path.name


#: Tables of pages with some of the rows and columns of a file, by the first cells of their header.
EXCERPTS = [
    ("peers.md", "peers_designs.csv", ("design", "kGE")),
    ("peers.md", "peers_codecs_ratios.csv", ("codec", "resnet", "vgg")),
    ("peers.md", "peers_nvcomp.csv", ("codec", "resnet", "vdsr")),
    ("speed.md", "speed_steps.csv", ("step", "resnet, 1 thread")),
    ("speed.md", "speed_resnet18.csv", ("policy", "CPU time")),
    ("fpga.md", "fpga_units.csv", ("configuration", "duplex")),
    ("fpga.md", "fpga_blocks.csv", ("block", "LUT4")),
    ("memory.md", "memory_models.csv", ("model", "peak MiB")),
    ("memory.md", "memory_compiled.csv", ("model", "peak MiB")),
    ("memory.md", "memory_ladder.csv", ("step", "published GiB")),
    ("paired.md", "paired_summary.csv", ("data", "network")),
]


@pytest.mark.parametrize(("page", "file", "begin"), EXCERPTS, ids=lambda one: one if isinstance(one, str) else one[0])
def test_rows_of_a_page_are_those_of_its_file(page, file, begin):
    lines = csv.reader((EVIDENCE / file).read_text(encoding="utf-8").splitlines())
    whole = [[cell.strip(" `*") for cell in line] for line in lines]
    found = [rows for rows in tables((EVIDENCE / page).read_text(encoding="utf-8")) if tuple(rows[0][: len(begin)]) == begin]
    # More than one table may begin so: the file has the last row of one of them.
    (shown,) = [rows for rows in found if any(in_order(rows[-1], line) for line in whole)]
    assert [row for row in shown[2:] if not any(in_order(row, line) for line in whole)] == []


def in_order(cells, line):
    """Return whether the cells are in one line, in their order."""
    rest = iter(line)
    return all(cell in rest for cell in cells)


def test_what_is_a_row_of_a_file():
    assert in_order(["a", "c"], ["a", "b", "c"])
    assert not in_order(["c", "a"], ["a", "b", "c"])
    assert tables("x\n| `a` | *b* |\n|---|--:|\n| 1 |  |\n\n| c |\n") == [[["a", "b"], ["---", "--:"], ["1", ""]], [["c"]]]
    assert source_names("`array.py` `sw/no.py` `python x.py` `report.md` `.py` x.sv `a.sv`,") == {"array.py", "x.py", "a.sv"}


def test_what_is_a_path_of_code():
    fenced = "\n```\n`sw/no`\n```\n\n"
    text = "`sw/a.py` `python benchmarks/x.py --y` `cdu_verif/streams/` `text/plain` `a or b`"
    text += f"{fenced}    pytest tests/t.py::x\n"
    assert paths(text) == {"sw/a.py", "benchmarks/x.py", "cdu_verif/streams/", "tests/t.py"}


def test_the_gallery_shows_every_plot_with_its_command():
    gallery = ROOT / "docs" / "evidence" / "plots.md"
    text = gallery.read_text(encoding="utf-8")
    shown = [(gallery.parent / target).resolve() for target in links(text) if target.endswith(PICTURES)]
    assert sorted(shown) == sorted((ROOT / "docs").rglob("*.png"))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        plots = re.findall(r"^\*\*([^*]+)\.\*\* (.+?)\n\n(?:    (cdu|python) )?", section, re.MULTILINE | re.DOTALL)
        commands = len(re.findall(r"^    (?:cdu|python) ", section, re.MULTILINE))
        assert len(plots) == len(re.findall(r"\]\(\S+\.png\)", section))
        assert commands == len(plots) or "by the same command" in section or "of one command" in section
        assert all(re.search(r"`[\w.]+\.png`|\]\(", what) for _, what, _ in plots)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name == "methods"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_long_tables_are_files_beside_the_page(page):
    tables = re.findall(r"(?:^\|.*\n)+", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    assert max((table.count("\n") - 2 for table in tables), default=0) <= 20


def test_tables_beside_pages_are_linked():
    linked = {(page.parent / unquote(target)).resolve() for page in PAGES for target in links(page.read_text(encoding="utf-8"))}
    beside = [path for folder in ("methods", "user") for path in (ROOT / "docs" / folder).glob("*.csv")]
    assert beside
    assert [path.name for path in beside if path not in linked] == []


def test_the_manual_is_short():
    """The README, CONTRIBUTING and all pages of docs count, tables included; anchors and other comments do not."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    texts = (re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL) for page in pages)
    assert sum(len(text.split()) for text in texts) <= 60_000
