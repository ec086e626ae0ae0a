"""GridQuantZ: the search, and that its policy has one number of bits."""

import actcodec
import pytest
import torch
from actcodec.study.grid_search import least_bits
from actcodec.training import policy
from cdu_tools.errors import UserError
from torch import nn

SCORES = {2: 10.0, 3: 91.0, 4: 89.5, 5: 92.0, 6: 92.0}


@pytest.mark.parametrize(("loss", "bits"), [(0.0, 5), (1.0, 3), (90.0, 2)])
def test_fewest_bits(loss, bits):
    tried = []
    result = least_bits(lambda width: tried.append(width) or SCORES[width], 92.0, loss, (6, 2, 5, 3, 4))
    assert result.bits == bits
    assert tried == list(range(2, bits + 1))
    assert result.scores == {width: SCORES[width] for width in tried}


def test_no_bits_do():
    with pytest.raises(UserError, match=r"no number of bits keeps a score of 93 \(2 bits 10, 3 bits 91\): allow more loss"):
        least_bits(SCORES.__getitem__, 93.0, widths=(2, 3))
    with pytest.raises(UserError, match="loss = -1 is not allowed: use 0 or more"):
        least_bits(SCORES.__getitem__, 93.0, -1)


@pytest.mark.parametrize("bits", [2, 5])
def test_policy_has_one_number_of_bits(bits):
    model, x = (
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 1)),
        torch.randn(4, 3, 8, 8),
    )
    with actcodec.compress_activations(model, policy("gridquantz", bits=bits)) as stats:
        y = model(x)
    y.backward(torch.ones_like(y))
    coded = [record for record in stats.records if record.codec == "acgc-quantz"]
    assert [record.op for record in coded] == ["input", "conv", "relu"]
    for record in coded:
        values = record.bytes_original // 4
        signs = actcodec.codec("brc").compress(torch.ones(record.shape)).nbytes if record.op == "relu" else 0
        assert record.bytes_compressed <= 5 * record.shape[1] + -(-values * (bits + 1) // 8) + signs
