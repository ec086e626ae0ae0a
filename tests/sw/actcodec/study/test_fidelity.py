"""Ratio and error of a unit's modes on activations, and their dependence on the configuration."""

import numpy as np
import pytest
import torch
from actcodec.study.activations import Activation
from actcodec.study.fidelity import Fidelity
from cdu_spec.config import CONFIGS, CduConfig
from cdu_spec.config_rules import ConfigError

VALUES = torch.randn(2, 3, 16, 24, generator=torch.Generator().manual_seed(4)).cumsum(3)


def measured(**parameters):
    fidelity = Fidelity.of([Activation("x", VALUES)])
    return {what["mode"]: fidelity.run(what, "") for what in fidelity.whats(CduConfig(**parameters))}


def test_sfpr_keeps_a_byte_per_value():
    found = measured(modes=("sfpr",))["sfpr"]
    # The stream has header, shape, three scales and a checksum besides the values.
    assert VALUES.numel() < found["bytes_compressed"] < VALUES.numel() + 100
    assert found["ratio"] == 4 * VALUES.numel() / found["bytes_compressed"]
    # Every channel is stretched to 128 steps; the scale is rounded to 8 bits.
    steps = VALUES.abs().amax(dim=(0, 2, 3), keepdim=True) / 128
    restored = (VALUES / steps).round().clamp(-128, 127) * steps
    expected = torch.linalg.vector_norm(VALUES - restored) / torch.linalg.vector_norm(VALUES)
    assert found["relative_error"] == pytest.approx(float(expected), rel=0.05)


def test_a_half_has_half_the_ratio():
    single, half = (measured(modes=("sfpr",), value_format=name)["sfpr"] for name in ("fp32", "fp16"))
    assert half["bytes_original"] * 2 == single["bytes_original"]
    assert half["bytes_compressed"] == single["bytes_compressed"]
    assert half["bytes_per_value"] == single["bytes_per_value"]


def test_only_what_changes_bytes_is_part_of_the_question():
    fidelity = Fidelity.of([Activation("x", VALUES)])

    def asked(**parameters):
        return {what["mode"]: what for what in fidelity.whats(CduConfig(**parameters))}

    plain = asked()
    assert list(plain) == ["sfpr", "sfpr+zvc", "jpeg-act"]
    assert asked(cdus=4, duplex="half", packed_port_bits=1024, value_port_bits=1024) == plain
    finer = asked(const_bits=13)
    assert finer["jpeg-act"] != plain["jpeg-act"]
    assert (finer["sfpr"], finer["sfpr+zvc"]) == (plain["sfpr"], plain["sfpr+zvc"])
    assert asked(scale_bits=24)["sfpr"] != plain["sfpr"]
    other = Fidelity.of([Activation("x", VALUES + 1)])
    assert next(iter(other.whats(CduConfig()))) != plain["sfpr"]


def test_every_mode_that_gives_values_back():
    found = measured(modes=CONFIGS["universal"].modes)
    assert set(found) == set(CONFIGS["universal"].modes) - {"brc", "bypass"}
    for result in found.values():
        assert np.isfinite(list(result.values())).all()
        assert result["ratio"] == pytest.approx(4 / result["bytes_per_value"])


def test_precision_and_rounding_reach_the_codec():
    usual = measured(modes=("jpeg-act",))["jpeg-act"]
    for change in ({"rounding": "half_away"}, {"const_bits": 11}, {"pass1_bits": 2}, {"scale_bits": 24}):
        assert measured(modes=("jpeg-act",), **change)["jpeg-act"] != usual


def test_no_unit_has_nine_bit_samples():
    with pytest.raises(ConfigError, match="sample_bits = 9 builds no unit"):
        measured(sample_bits=9)
