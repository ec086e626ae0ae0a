"""Options of the policies with error bounds: which part takes them, and which are refused."""

import actcodec
import pytest
from actcodec.training import policy
from cdu_tools.errors import UserError


def test_options_reach_codec_and_policy():
    free = policy("autoquantz", widths="any", seed=3)
    assert {codec.name for codec in free._codecs.values()} == {"brc", "acgc-quantz"}
    made = []

    def factory(name, **options):
        made.append((name, options))
        return actcodec.codec(name, **options)

    assert policy("autoquant", factory, scale_bits=8, interval=7).interval == 7
    assert made == [("brc", {}), ("autoquant", {"scale_bits": 8})]
    assert set(actcodec.training.policy_options("autoquant")) > {"variance_growth", "conv_constant", "independent", "backend"}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("autoquant", {"bits": 4}, "codec 'autoquant' has no option 'bits': use variance_growth, conv_constant, independent"),
        ("autoquant", {"widths": 3}, "widths = 3 is not allowed: use hardware or any"),
        ("autoquant", {"widths": "any", "scale_bits": 8}, "codec 'acgc-quant' with an error bound has no option 'scale_bits'"),
        ("autoquant", {"variance_growth": 0}, "variance_growth = 0 is not allowed: use a positive finite number"),
        ("autoquant", {"conv_constant": float("nan")}, "conv_constant = nan is not allowed"),
        ("autoquant", {"independent": 1}, "independent = 1 is not allowed: use True or False"),
        ("autoquant", {"interval": 0}, "interval = 0 is not allowed: use 1 or more steps"),
        ("autoquant", {"window": 2.5}, "window = 2.5 is not allowed: use 1 or more times"),
        ("gridquantz", {"interval": 2}, "codec 'gridquantz' has no option 'interval': use bits, seed"),
    ],
)
def test_bad_options(name, options, message):
    with pytest.raises(UserError, match=message):
        policy(name, **options)
