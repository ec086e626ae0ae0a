"""``cdu diagnose`` as a user sees it, and policy files on the command line."""

import json

import typer
from cdu_cli import diagnose, train
from typer.testing import CliRunner


def run(*arguments, command=diagnose):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    command.register(app)
    return CliRunner().invoke(app, list(map(str, arguments)))


SMALL = ("--width", 8, "--limit", 256, "--steps", 3)


def test_report_results_and_picture(tmp_path):
    arguments = ("--codec", "jpeg-act", "--dqt", "optH", "--batches", 2, *SMALL)
    result = run(*arguments, "--json", tmp_path / "d.json", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results == json.loads((tmp_path / "d.json").read_text())
    assert (results["model"], results["dataset"], results["codec"], results["batches"]) == ("resnet", "digits", "jpeg-act", 2)
    assert 0 < results["gradient_error"] < 1
    report = (tmp_path / "out" / "report.md").read_text()
    for tensor in results["tensors"]:
        assert f"| {tensor['module']} | {tensor['operation']} |" in report
        assert f"{tensor['gradient_error']:.4f}" in report
        assert tensor["module"] in result.output
    assert {tensor["codec"] for tensor in results["tensors"]} == {"jpeg-act", "sfpr+zvc", "sfpr", "brc"}
    assert (tmp_path / "out" / "gradient_errors.png").read_bytes()[:4] == b"\x89PNG"
    again = run(*arguments, "-o", tmp_path / "again")
    assert again.exit_code == 0
    assert json.loads((tmp_path / "again" / "results.json").read_text()) == results


def test_what_auto_decided_in_cdu_train_can_be_diagnosed_and_trained_with(tmp_path):
    arguments = ("--seeds", 1, "--codec", "auto", "--ratio", 10, "-o", tmp_path / "auto")
    result = run(*arguments, *SMALL, command=train)
    assert result.exit_code == 0, result.output
    decided = tmp_path / "auto" / "auto.policy.json"
    assert json.loads(decided.read_text())["rules"]
    result = run("--codec", decided, "--batches", 1, *SMALL, "-o", tmp_path / "diagnosis")
    assert result.exit_code == 0, result.output
    assert 8 < json.loads((tmp_path / "diagnosis" / "results.json").read_text())["ratio"] < 12
    result = run("--seeds", 1, "--codec", decided, *SMALL, "-o", tmp_path / "again", command=train)
    assert result.exit_code == 0, result.output
    runs = json.loads((tmp_path / "again" / "results.json").read_text())["runs"]
    assert [one["codec"] for one in runs] == ["none", str(decided)]
    assert 8 < runs[1]["ratio"] < 12
