"""The analysis during training: the right tensors, and a network that is left alone."""

import copy

import numpy as np
import pytest
import scipy.fft
import torch
from actcodec.study.frequency_analysis import FrequencyAnalysis
from cdu_spec import UserError
from torch import nn


def network():
    torch.manual_seed(1)
    layers = [nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Conv2d(4, 5, 3), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 2))


def norms(x, low_rows, low_columns):
    """By scipy."""
    coefficients = scipy.fft.dctn(x.detach().double().numpy(), axes=(-2, -1), norm="ortho")
    low = np.linalg.norm(coefficients[..., :low_rows, :low_columns])
    return low, np.sqrt(np.linalg.norm(coefficients) ** 2 - low**2)


def test_lambdas_of_every_saved_map_and_of_its_change():
    x = torch.randn(6, 3, 12, 18, generator=torch.Generator().manual_seed(2))
    model = network()
    analysis = FrequencyAnalysis(x, 0.5)
    first = analysis.measure(model, 0)
    assert [(row.module, row.operation, row.shape[2:]) for row in first] == [
        ("0", "input", (12, 18)),
        ("1", "conv", (10, 16)),
        ("2", "relu", (10, 16)),
        ("4", "dropout", (10, 16)),
        ("5", "relu", (8, 14)),
    ]
    assert all(row.change is None and row.relative_change is None and row.epoch == 0 for row in first)
    conv = model[0](x)
    for row, values, corner in ((first[0], x, (6, 9)), (first[1], conv, (5, 8))):
        assert (row.norms.low, row.norms.high) == pytest.approx(norms(values, *corner), rel=1e-6)

    with torch.no_grad():
        model[0].weight.add_(0.1)
    second = analysis.measure(model, 1)
    assert second[0].change.low == second[0].change.high == 0.0
    changed = model[0](x) - conv
    assert (second[1].change.low, second[1].change.high) == pytest.approx(norms(changed, 5, 8), rel=1e-5)
    low, high = second[1].relative_change
    assert low == pytest.approx(second[1].change.low / second[1].norms.low)
    assert high == pytest.approx(second[1].change.high / second[1].norms.high)
    # Dropout drops the same values again.
    third = analysis.measure(model, 2)
    assert all(row.change.low == row.change.high == 0.0 for row in third)


def test_the_network_is_not_changed():
    model = network().eval()
    state = copy.deepcopy(model.state_dict())
    random = torch.get_rng_state()
    FrequencyAnalysis(torch.randn(4, 3, 9, 9, generator=torch.Generator().manual_seed(2))).measure(model, 0)
    assert torch.equal(torch.get_rng_state(), random)
    assert not model.training
    assert all(torch.equal(state[name], now) for name, now in model.state_dict().items())


def test_corners_are_checked_at_once():
    with pytest.raises(UserError, match=r"corner = 2\.0"):
        FrequencyAnalysis(torch.ones(1, 3, 9, 9), 2.0)
