"""Options of every codec and policy: meaningless values of any type are refused in one sentence."""

import dataclasses
import math
import warnings

import pytest
import torch
from actcodec.codecs import CODEC_NAMES, codec, codec_options
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.training import policy, policy_options
from cdu_tools.errors import UserError

NEVER = (math.nan, math.inf, -math.inf, "", "nonsense", (), [], {}, b"", object())
#: Values that are refused, or taken where a number without a bound has a meaning; nothing else may happen.
UNUSUAL = (1e300, -1e300, 1e-320, 10**30, -(10**30), -1, 0, 2.5, True, None)
#: Options for which such large numbers are always refused.
BOUNDED = ("S", "bits", "seed", "step_log2", "scale_bits", "group", "block", "deviations")


def _made_with(make, name, option, value):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(name, **{option: value})
    except UserError as error:
        text = str(error)
        assert "\n" not in text
        assert len(text) < 600
        return False
    return True


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_codecs(name):
    _check(codec, name, codec_options(name))


@pytest.mark.parametrize("name", CODEC_NAMES)
def test_whole_numbers_are_no_floats(name):
    for option in dataclasses.fields(codec(name)):
        for value in (0.0, 1.0, 4.0, 8.0, 24.0, torch.ones(2)) if option.type.startswith("int") else ():
            assert not _made_with(codec, name, option.name, value), f"{option.name} = {value!r} is taken"


@pytest.mark.parametrize("name", [None, 3, ["sfpr"]])
def test_names_are_texts(name):
    with pytest.raises(UserError, match=r"unknown codec .*: (use|did you mean) "):
        codec(name)


@pytest.mark.parametrize("name", [name for name in POLICY_NAMES if name != "actnn-L5"])  # it needs CUDA
def test_policies(name):
    _check(policy, name, policy_options(name))


def _check(make, name, options):
    for option in options:
        for value in NEVER:
            assert not _made_with(make, name, option, value), f"{option} = {value!r} is taken"
        for value in UNUSUAL:
            taken = _made_with(make, name, option, value)
            assert not (taken and option in BOUNDED and abs(value or 0) > 1e12), f"{option} = {value!r} is taken"
