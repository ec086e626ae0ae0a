"""Encoder and decoder of MX, in Amaranth's simulator and by their proofs."""

import pytest
from cdu_spec import CduConfig
from cdu_verif.benches.in_amaranth import assert_passes
from cdu_verif.blocks import record
from cdu_verif.formal.proof import prove


@pytest.mark.parametrize("name", ["mx_encoder", "mx_decoder"])
def test_cases(name):
    assert_passes(name, CduConfig())


@pytest.mark.parametrize(
    ("block", "label", "pattern", "replacement"),
    [
        ("mx_encoder", "mx_encoder[mxfp4]/element", ".GREATEST(7)", ".GREATEST(6)"),
        ("mx_decoder", "mx_decoder[mxfp8-e4m3]/arithmetic", ".GREATEST(126)", ".GREATEST(125)"),
    ],
)
def test_elements_are_proven_and_a_wrong_reference_is_found(tmp_path, monkeypatch, block, label, pattern, replacement):
    monkeypatch.chdir(tmp_path)
    (found,) = [one for one in record(block).properties(CduConfig()) if one.label == label]
    assert prove(found, tmp_path / "right").proven
    text = found.method.harness
    wrong = lambda device: text(device).replace(pattern, replacement)  # noqa: E731
    assert pattern in text(found.device())
    object.__setattr__(found.method, "harness", wrong)
    assert not prove(found, tmp_path / "wrong").proven
