"""Policy autoshift: registers follow the allowed error, are known before the tensor, and the error is the allowed one."""

import actcodec
import pytest
import torch
from actcodec.codecs.acgc.steered_codec import KINDS, SteeredCodec
from actcodec.policies.bounds.steered import UNSTEERED
from actcodec.policies.bounds.steering import Lane
from actcodec.training import policy
from cdu_spec.modes import Mode
from torch import nn


def tensor(*shape, seed=0):
    """Maps with more in low frequencies than in high ones, as activations have."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return x if len(shape) < 4 else nn.functional.avg_pool2d(x, 3, 1, 1) * 3 + 0.3 * x


def step(model, chosen, x, seed=5):
    """Run forward, and backward with a gradient of its own; return the kept tensors."""
    model.zero_grad()
    with actcodec.compress_activations(model, chosen, min_bytes=0, measure_error=True) as stats:
        y = model(x)
    y.backward(tensor(*y.shape, seed=seed))
    return stats


@pytest.mark.parametrize(("growth", "mode"), [(0.5, "sfpr"), (20, "jpeg-act"), (100, "jpeg-act"), (500, "jpeg-act")])
def test_errors_come_to_what_the_gradients_allow(growth, mode):
    """Seen from outside: the norm of the error, and the formula of the bound from the gradients themselves."""
    torch.manual_seed(0)
    conv, x = nn.Conv2d(4, 6, 3, padding=1), tensor(8, 4, 16, 16)
    chosen = policy("autoshift", interval=1, variance_growth=growth)
    for _ in range(8):
        stats = step(conv, chosen, x)
    g = tensor(8, 6, 16, 16, seed=5).double()
    allowed = (0.5 * growth * conv.weight.grad.double().square().sum() / (9 * x.numel() * g.square().sum())).sqrt()
    (record,) = stats.records
    error = record.relative_error * x.double().norm() / x.numel() ** 0.5
    assert float(error / allowed) == pytest.approx(1, abs=0.06)
    (layer,) = chosen.layers
    assert layer.setting.startswith(mode)
    # This step's gradients count in layer.error already, and did not yet when the tensor was compressed.
    assert layer.used == pytest.approx(float(error) / layer.error, rel=0.01)


def test_larger_errors_take_fewer_bytes_and_coarser_tables():
    conv, x = nn.Conv2d(4, 6, 3, padding=1), tensor(8, 4, 16, 16)
    bits, shifts = [], []
    for growth in (20, 60, 200, 600):
        chosen = policy("autoshift", interval=1, variance_growth=growth)
        for _ in range(6):
            step(conv, chosen, x)
        bits.append(chosen.layers[0].bits)
        shifts.append(int(chosen.layers[0].setting.split()[2]))
    assert bits == sorted(bits, reverse=True)
    assert shifts == sorted(shifts)
    assert shifts[-1] > shifts[0]


@pytest.fixture
def told(monkeypatch):
    """The settings of jobs."""
    found, own = [], SteeredCodec.compress_with
    monkeypatch.setattr(
        SteeredCodec, "compress_with", lambda codec, x, setting: found.append(setting) or own(codec, x, setting)
    )
    return found


def test_a_unit_is_told_before_the_tensor_is_there(told):
    """After the same steps the registers are the same, whatever tensors follow."""
    ends = []
    for last in (tensor(8, 4, 16, 16, seed=9), tensor(8, 4, 16, 16, seed=10) * 0.3):
        torch.manual_seed(0)
        conv = nn.Conv2d(4, 6, 3, padding=1)
        chosen = policy("autoshift", interval=10, settling=3, variance_growth=100)
        for seed in range(5):
            step(conv, chosen, tensor(8, 4, 16, 16, seed=seed), seed=seed)
        told.clear()
        step(conv, chosen, last)
        ends.append(told[0])
        assert len(told) == 1
        assert not chosen.layers[0].measured
    first, second = ends
    assert (first.mode, first.shift, first.point) == (second.mode, second.shift, second.point)
    assert torch.equal(first.k, second.k)


def test_what_is_suddenly_larger_has_scales_of_its_own():
    conv, x = nn.Conv2d(4, 6, 3, padding=1), tensor(8, 4, 16, 16)
    chosen = policy("autoshift", interval=1, variance_growth=100)
    for _ in range(4):
        step(conv, chosen, x)
    stats = step(conv, chosen, 10 * x)
    assert chosen.layers[0].setting == UNSTEERED
    assert stats.records[0].relative_error < 0.02
    step(conv, chosen, 10 * x)
    assert chosen.layers[0].setting != UNSTEERED


@pytest.mark.parametrize("name", KINDS)
def test_registers_make_the_step(name):
    codec, reach = SteeredCodec(scale_bits=24), torch.tensor([0.5, 3.0, 40.0], dtype=torch.float64)
    for step in (0.004, 0.01, 0.03, 0.07, 0.2, 0.9, 3.0):
        setting = codec.setting(name, step, reach)
        if setting.mode is Mode.AUTOQUANTZ:
            unit, most = 2.0 ** (16 - setting.bits), 2.0**15
        else:
            unit, most = 2.0**setting.shift, 127.0
        steps = unit / setting.k.double() / reach
        assert bool((setting.k.double() * reach <= most * (1 + 1e-6)).all()), "nothing saturates"
        if step > KINDS[name].least_step:
            finer = (1 + 4.0**-setting.shift) ** 0.5 if setting.mode is Mode.JPEG_ACT else 1
            assert torch.allclose(steps * finer, torch.full_like(steps, step), rtol=1e-6)
        else:
            assert bool((steps >= 1 / 127 - 1e-6).all())


def test_units_without_the_entropy_coder_have_no_point():
    conv, x = nn.Conv2d(4, 6, 3, padding=1), tensor(8, 4, 16, 16)
    chosen = policy("autoshift", interval=1, variance_growth=100, coder="zvc", modes=["sfpr+zvc", "jpeg-act"])
    for _ in range(5):
        step(conv, chosen, x)
    assert chosen.layers[0].setting.startswith("jpeg-act")
    assert chosen.layers[0].setting.endswith("point 0")


def test_a_lane_comes_to_any_error_that_grows_with_the_step():
    """Errors in proportion to the step, to its root, and to neither where the step is small."""
    for error_of in (lambda step: step / 5, lambda step: 0.4 * step**0.5, lambda step: 0.1 * (step**2 + 0.2) ** 0.5):
        lane = Lane(3.0, 0)
        for _ in range(5):
            lane.correct({0: error_of(lane.step(0.3)) / 0.3}, 0.3, 0.01, 100)
        assert error_of(lane.step(0.3)) == pytest.approx(0.3, rel=0.02)


def test_the_cheapest_that_keeps_the_error_is_best_and_a_finest_step_must_keep_it():
    cheap, finest, dear = (Lane(3.0, 0, used=used, nbytes=size) for used, size in ((1.2, 10), (1.2, 5), (0.9, 90)))
    finest.finest = True
    assert min((cheap, finest, dear), key=lambda lane: lane.cost) is cheap
    assert min((finest, dear), key=lambda lane: lane.cost) is dear


def test_shapes_that_are_no_maps():
    linear, x = nn.Sequential(nn.Linear(12, 7), nn.Linear(7, 3)), tensor(32, 12)
    chosen = policy("autoshift", interval=1, variance_growth=0.5)
    for _ in range(5):
        step(linear, chosen, x)
    assert len(chosen.layers) == 2
    assert {layer.setting.split()[0] for layer in chosen.layers} <= {"sfpr", "sfpr+zvc", "autoquantz"}
