"""The page of ``cdu summary --page``: its links lead somewhere, its tables have rows, its figures are those of the files."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
import typer
from cdu_cli import summary
from cdu_cli.results_page import buses_of
from typer.testing import CliRunner

PORTS = [
    {"name": "clk", "direction": "input", "width": 1},
    *({"name": f"s_axis_{part}", "direction": "input", "width": bits} for part, bits in (("tdata", 256), ("tlast", 1))),
    {"name": "s_axis_tready", "direction": "output", "width": 1},
    {"name": "s_axis_scale_tdata", "direction": "input", "width": 32},
    {"name": "m_axis_tdata", "direction": "output", "width": 128},
    {"name": "m_axis_tready", "direction": "input", "width": 1},
    {"name": "s_axil_awaddr", "direction": "input", "width": 12},
    {"name": "s_axil_wdata", "direction": "input", "width": 32},
    {"name": "s_axil_rdata", "direction": "output", "width": 32},
]
RESULTS = {
    "unit/small.json": {"name": "small", "ports": PORTS, "sha256": {"small.v": "0123456789abcdef" * 4}},
    "check/report.json": {
        "tests": 1,
        "failures": 0,
        "results": [
            {
                "group": "unit",
                "name": "trains",
                "status": "passed",
                "seconds": 1.25,
                "figures": {"steps": 3, "tensors_compressed": 12, "ratio": 5.5},
            }
        ],
    },
    "cost/synth.json": {
        "pdk": "nangate45",
        "blocks": {
            "<dct>": {"ge": 12_340, "flip_flops": 1_234, "mhz": 633.2},
            "idct": {"ge": 6_170, "flip_flops": 500, "mhz": 700.0},
        },
    },
    "train/results.json": {
        "model": "resnet",
        "dataset": "digits",
        "runs": [
            {"codec": codec, "seed": seed, "score_name": "accuracy", "score": 90 + seed + gain, "ratio_of_everything": ratio}
            for codec, gain, ratio in (("none", 0.0, 1.0), ("jpeg-act", 0.5, 4.0))
            for seed in range(3)
        ],
    },
}


class Page(HTMLParser):
    """Collects what the page shows."""

    def __init__(self, text):
        super().__init__()
        self.links, self.sources, self.tags, self.tables = [], [], [], []
        self.in_cell = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        found = dict(attributes)
        self.links += [found["href"]] if "href" in found else []
        self.sources += [found["src"]] if "src" in found else []
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.in_cell = True

    def handle_data(self, data):
        if self.in_cell:
            self.tables[-1][-1][-1] += data.strip()

    def handle_endtag(self, tag):
        self.in_cell = self.in_cell and tag not in ("td", "th")


@pytest.fixture
def folder(tmp_path):
    for name, content in RESULTS.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "unit" / "small.v").write_text("module small; endmodule\n")
    (tmp_path / "train" / "curves.png").write_bytes(b"\x89PNG picture")
    return tmp_path


def written(folder):
    app = typer.Typer()
    summary.register(app)
    result = CliRunner().invoke(app, [str(folder), "--page"])
    assert result.exit_code == 0, result.exception
    assert str(folder / "index.html") in result.stdout
    return (folder / "index.html").read_text(encoding="utf-8")


def test_links_lead_somewhere_and_nothing_comes_from_elsewhere(folder):
    text = written(folder)
    page = Page(text)
    assert page.links
    assert all((folder / link).exists() for link in page.links)
    assert all(source.startswith("data:image/png;base64,") for source in page.sources)
    assert page.sources
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}


def test_tables_have_the_figures_of_the_files(folder):
    tables = Page(written(folder)).tables
    assert all(len(table) > 1 for table in tables)
    rows = [row for table in tables for row in table]
    assert ["jpeg-act", "91.50", "90.50", "91.50", "92.50", "4.00"] in rows
    assert ["codec", "mean accuracy", "seed 0", "seed 1", "seed 2", "saved tensors smaller by"] in rows
    assert ["<dct>", "12.3", "1,234", "633"] in rows
    assert ["unit", "trains", "passed", "1.2"] in rows
    assert ["tensors compressed", "12"] in rows
    assert ["s_axis", "input", "3", "256"] in rows
    assert ["unit/small.v", "24", "0123456789abcdef"] in rows
    assert ["bit-equal to the golden model", "1 of 1 tests passed", "check"] in rows


def test_pictures_are_drawn_from_the_files(folder):
    pictures = [ET.fromstring(one) for one in re.findall(r"<svg.*?</svg>", written(folder), re.DOTALL)]
    unit, bars = pictures
    namespace = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in unit.iter(f"{namespace}text")]
    assert {"small", "s_axis", "s_axis_scale", "m_axis", "256 bits", "128 bits"} <= set(words)
    assert any("s_axil (32)" in word and "clk (1)" in word for word in words)
    widths = [float(bar.get("width")) for bar in bars.iter(f"{namespace}rect")]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_buses():
    assert buses_of(PORTS) == {
        "clk": ("input", "1", "1"),
        "s_axis": ("input", "3", "256"),
        "s_axis_scale": ("input", "1", "32"),
        "m_axis": ("output", "2", "128"),
        "s_axil": ("both", "3", "32"),
    }


def test_a_page_without_training(folder):
    shutil.rmtree(folder / "train")
    assert not Page(written(folder)).sources
