"""The page of what is stable names things that exist, with the versions that they have."""

import importlib
import json
import re

from actcodec.codecs import CODEC_NAMES, container, exact_copy
from actcodec.golden import jpeg_base_stream
from actcodec.policies import recommended
from cdu_cli.main import app
from cdu_spec import CONFIGS, Mode, bitstream, registers
from manual_pages import page_text
from typer.testing import CliRunner

PAGE = page_text("reference/stable.md")
ROWS = {row[0]: row[1:] for row in re.findall(r"^\| (.+?) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)}


def names(row):
    return re.findall(r"`([^`]+)`", ROWS[row][0])


def test_the_page_is_short():
    assert len(PAGE.split()) <= 400


def test_packages_export_names():
    for package in names("Python"):
        module = importlib.import_module(package)
        assert module.__all__
        for name in module.__all__:
            getattr(module, name)


def test_configurations_and_codecs_are_all_there_are():
    assert set(names("units")) - {"cdu_spec.CduConfig"} == set(CONFIGS)
    named = {mode.label for mode in Mode} - {"mx"}
    assert set(names("codecs")) == named | {"jpeg-gmc", "jpeg-base"}
    assert set(names("codecs")) <= set(CODEC_NAMES)


def test_versions_are_those_of_the_code():
    assert ROWS["registers"][1] == f"register map {registers.MAJOR}.{registers.MINOR}"
    streams = ((bitstream, "CDU"), (jpeg_base_stream, "CDJ"))
    others = ((container, "CDC"), (exact_copy, "CDX"))
    for row, formats in (("streams", streams), ("containers, exact copies", others)):
        assert ROWS[row][1] == ", ".join(f"`{name}` {module.VERSION}" for module, name in formats)
        assert all(name.encode() + b"\x1a" == module.MAGIC for module, name in formats)


def test_the_manifest_has_these_keys(tmp_path):
    result = CliRunner().invoke(app, ["generate", "--block", "brc_encoder", "-o", str(tmp_path)])
    assert result.exit_code == 0
    manifest = json.loads((tmp_path / "brc_encoder.json").read_text(encoding="utf-8"))
    assert set(names("NAME.json")) <= set(manifest)
    assert re.search(r"^module cdu_brc_encoder\b", (tmp_path / "brc_encoder.v").read_text(encoding="utf-8"), re.MULTILINE)


def test_commands_fail_with_another_code_than_success():
    assert CliRunner().invoke(app, ["list"]).exit_code == 0
    assert CliRunner().invoke(app, ["info", "nothing.cdu"]).exit_code != 0


def test_what_is_recommended_is_stable():
    assert recommended.families()
    for family in recommended.families():
        assert recommended.status(recommended.recommended(family).policy.name) == recommended.STABLE
