"""``cdu offload`` as a user sees it."""

import json

import pytest
import typer
from cdu_cli import offload
from typer.testing import CliRunner


def run(*arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    offload.register(app)
    return CliRunner().invoke(app, list(map(str, arguments)))


SMALL = ("--network", "vdsr", "--method", "cdma", "--method", "gist", "--method", "jpeg-act")


def test_report_results_and_pictures(tmp_path):
    result = run(*SMALL, "-o", tmp_path, "--json", tmp_path / "copy.json")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "offload.json").read_text())
    assert found == json.loads((tmp_path / "copy.json").read_text())
    methods = found["networks"]["vdsr"]["methods"]
    assert list(methods) == ["none", "vdnn", "cdma", "gist", "jpeg-act"]
    for one in methods.values():
        assert one["seconds"] == pytest.approx(one["compute_seconds"] + one["overhead_seconds"] + sum(one["stalls"].values()))
    speed = {name: methods["vdnn"]["seconds"] / one["seconds"] for name, one in methods.items()}
    assert speed["vdnn"] < speed["cdma"] < speed["jpeg-act"] < speed["none"]
    assert found["speedups"]["vdnn"]["jpeg-act"]["mean"] == pytest.approx(speed["jpeg-act"])
    report = (tmp_path / "offload.md").read_text()
    assert f"| JPEG-ACT | {speed['jpeg-act']:.2f} | {speed['jpeg-act']:.2f} |" in report
    for fact in found["facts"].values():
        assert fact["source"] in report
    for picture in ("speedup.png", "stalls.png", "sensitivity.png"):
        assert (tmp_path / picture).read_bytes()[:4] == b"\x89PNG"
    assert {place["method"] for place in found["sweeps"]["link"]} == {"vdnn", "cdma", "jpeg-act"}


def test_ratios_rates_clock_and_link_of_ones_own(tmp_path):
    """Halved ratios on a slow link: twice the bytes. The unit's figures come from the reports."""

    def results(ratio):
        rows = [
            {"op": op, "shape": [2, 4, 16, 16], "codec": "jpeg-act", "ratio": ratio} for op in ("conv", "relu", "sum", "input")
        ]
        path = tmp_path / f"results{ratio:g}.json"
        path.write_text(json.dumps({"model": "vdsr", "runs": [{"codec": "jpeg-act", "tensors": rows}]}))
        return path

    rate = {"mode": "jpeg-act", "values_per_cycle": 30.0, "possible": 32.0, "values": 3000, "cycles": 120}
    verify = tmp_path / "verify.json"
    verify.write_text(
        json.dumps(
            {"results": [{"group": "array", "measurements": [rate | {"direction": d} for d in ("compress", "decompress")]}]}
        )
    )
    synth = tmp_path / "synth.json"
    synth.write_text(json.dumps({"blocks": {"array": {"critical_path_ns": 1.0}}}))
    moved = {}
    for ratio in (4.0, 8.0):
        arguments = ("--ratios", results(ratio), "--verify", verify, "--synth", synth, "--link-gb-s", 4, "--placement", "cache")
        result = run("--network", "vdsr", "--method", "jpeg-act", *arguments, "-o", tmp_path / "out")
        assert result.exit_code == 0, result.output
        found = json.loads((tmp_path / "out" / "offload.json").read_text())
        moved[ratio] = found["networks"]["vdsr"]["methods"]["jpeg-act"]["bytes_moved"]["compress"]
        assert found["networks"]["vdsr"]["methods"]["jpeg-act"]["ratio"] == pytest.approx(ratio, rel=1e-3)
        assert found["unit"]["clock_hz"] == pytest.approx(1e9)
        assert found["unit"]["mode_values_per_cycle"] == {"compress jpeg-act": 30.0, "decompress jpeg-act": 30.0}
        assert found["unit"]["start_cycles"] == {"compress": 20.0, "decompress": 20.0}
        assert found["platform"]["link_bytes_per_s"] == pytest.approx(4e9)
        assert found["platform"]["placement"] == "cache"
    assert moved[4.0] == pytest.approx(2 * moved[8.0], rel=1e-3)
