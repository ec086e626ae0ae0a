"""``cdu train`` as a user sees it."""

import json
import math

import typer
from actcodec.saved.statistics import SMALL, WEIGHTS, integers_of
from cdu_cli import train
from typer.testing import CliRunner


def run(*arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    train.register(app)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_resnet_on_digits(tmp_path):
    result = run(
        "--steps", 4, "--seeds", 2, "--width", 8, "--limit", 256, "--json", tmp_path / "r.json", "-o", tmp_path / "out"
    )
    assert result.exit_code == 0, result.output
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results == json.loads((tmp_path / "r.json").read_text())
    assert (results["model"], results["dataset"]) == ("resnet", "digits")
    runs = {(r["codec"], r["seed"]): r for r in results["runs"]}
    assert set(runs) == {(c, s) for c in ("none", "jpeg-act", "sfpr") for s in (0, 1)}
    for (codec, seed), r in runs.items():
        assert len(r["losses"]) == 4
        assert r["losses"][0] == runs[("none", seed)]["losses"][0]  # same weights, same batch; compression acts on gradients
        assert r["score_name"] == "accuracy"
        assert 0 <= r["score"] <= 100
        assert math.isclose(r["ratio"], r["bytes_original"] / r["bytes_compressed"])
        assert (r["ratio"] == 1.0) == (codec == "none")
        others = sum(count for what, count in r["not_counted"].items() if what != WEIGHTS)
        assert set(r["not_counted"]) == {WEIGHTS, SMALL, integers_of("loss")}
        assert r["not_counted"][integers_of("loss")] == 4 * 64 * 8  # 4 steps of 64 labels
        everything = (r["bytes_original"] + others) / (r["bytes_compressed"] + others)
        assert math.isclose(r["ratio_of_everything"], everything)
        assert all(set(t) == {"name", "op", "shape", "codec", "ratio", "relative_error"} for t in r["tensors"])
    assert runs[("none", 0)]["losses"] != runs[("none", 1)]["losses"]
    assert runs[("jpeg-act", 0)]["losses"] != runs[("none", 0)]["losses"]
    assert (tmp_path / "out" / "curves.png").read_bytes()[:4] == b"\x89PNG"
    report = (tmp_path / "out" / "report.md").read_text()
    assert f"{runs[('sfpr', 0)]['ratio']:.1f}" in report
    assert f"; ratio with them {runs[('sfpr', 0)]['ratio_of_everything']:.2f}" in report


def test_same_seed_same_losses_and_vdsr_on_photos(tmp_path):
    arguments = ("--model", "vdsr", "--steps", 3, "--seeds", 1, "--codec", "jpeg-act", "--dqt", "optLH", "--batch", 16)
    losses = []
    for name in ("a", "b"):
        result = run(*arguments, "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        results = json.loads((tmp_path / name / "results.json").read_text())
        losses.append([r["losses"] for r in results["runs"]])
        assert [r["codec"] for r in results["runs"]] == ["none", "jpeg-act"]
        assert results["runs"][0]["score_name"] == "psnr"
        assert 15 < results["runs"][0]["score"] < 50
    assert losses[0] == losses[1]


def test_stochastic_codecs_repeat_run_by_run(tmp_path):
    arguments = ("--steps", 3, "--width", 8, "--limit", 256, "--codec", "division,actnn,actnn-L3,blpa-coded", "--bits", 4)
    both = run(*arguments, "--seeds", 2, "-o", tmp_path / "both")
    assert both.exit_code == 0, both.output
    assert run(*arguments, "--seeds", 1, "--seed", 1, "-o", tmp_path / "one").exit_code == 0
    read = [json.loads((tmp_path / name / "results.json").read_text())["runs"] for name in ("both", "one")]
    losses = [{(r["codec"], r["seed"]): r["losses"] for r in runs} for runs in read]
    assert len(losses[1]) == 5
    assert all(losses[0][key] == found for key, found in losses[1].items())
    assert losses[1][("division", 1)] != losses[1][("actnn", 1)]
    codecs = {t["codec"] for r in read[0] if r["codec"] == "division" for t in r["tensors"]}
    assert {"division", "actnn", "brc"} <= codecs


def test_forms_in_floating_point(tmp_path):
    """DIVISION's with its options, and BLPA's, which has none of them."""
    arguments = ("--steps", 2, "--seeds", 1, "--width", 8, "--limit", 256, "--codec", "division-float,blpa", "--bits", 4)
    ratios = {}
    for name, options in (("both", ()), ("low", ("--parts", "low")), ("wide", ("--block", 12))):
        result = run(*arguments, *options, "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        runs = {r["codec"]: r for r in json.loads((tmp_path / name / "results.json").read_text())["runs"]}
        ratios[name] = runs["division-float"]["ratio"]
        assert {t["codec"] for t in runs["blpa"]["tensors"]} == {"blpa-float", "brc", "loss"}
        assert all(math.isfinite(loss) for r in runs.values() for loss in r["losses"])
    assert ratios["both"] < ratios["wide"] < ratios["low"]


def test_cdma_trains_as_without_it_and_gist_takes_a_format(tmp_path):
    arguments = ("--steps", 4, "--seeds", 1, "--width", 8, "--limit", 256, "--codec", "gist,cdma")
    ratios = {}
    for dpr in ("fp16", "fp8"):
        result = run(*arguments, "--dpr", dpr, "-o", tmp_path / dpr)
        assert result.exit_code == 0, result.output
        runs = {r["codec"]: r for r in json.loads((tmp_path / dpr / "results.json").read_text())["runs"]}
        assert runs["cdma"]["losses"] == runs["none"]["losses"] != runs["gist"]["losses"]
        assert runs["cdma"]["scores"] == runs["none"]["scores"]
        assert runs["cdma"]["ratio"] > 1
        ratios[dpr] = runs["gist"]["ratio"]
    assert 2 < ratios["fp16"] < ratios["fp8"]
