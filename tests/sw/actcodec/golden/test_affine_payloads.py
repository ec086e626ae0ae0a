"""Payloads of all affine modes against an encoder written from docs/reference/bitstream.md, and the promises on decoding."""

import pytest
import torch
from actcodec.codecs import TorchBackend, beats_in, compression_job
from actcodec.golden import actnn, autoquant, blpa, division
from cdu_spec import BitstreamError, Dtype, MatrixView, Mode
from cdu_spec.affine import CODE_BITS, AffineSettings
from cdu_spec.modes import AFFINE_MODES
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st
from plain_affine import Encoder

VARIANTS = [(mode, False) for mode in AFFINE_MODES] + [(Mode.DIVISION, True)]
shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 10), st.integers(1, 40))
kinds = st.sampled_from(["normal", "relu", "constant", "extremes", "small"])


def tensor(kind, shape, seed):
    """Return integers of SFPR's range as floats; with k = 1 they are quantised unchanged."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random) * 6000
    if kind == "relu":
        x = x.relu()
    elif kind == "constant":
        x = torch.full(shape, float(torch.randint(-32768, 32768, (1,), generator=random)))
    elif kind == "extremes":
        x = torch.where(x > 0, 32767.0, -32768.0)
    elif kind == "small":
        x = torch.randint(-3, 4, shape, generator=random).float()
    return x.round().clamp(-32768, 32767)


def settings_of(mode, block_range, bits, nearest, seed):
    found = mode is Mode.ACTNN or block_range
    step_log2 = 0 if found else {Mode.DIVISION: 12 - bits, Mode.BLPA: 7}.get(mode, 16 - bits)
    return AffineSettings(bits, step_log2, not nearest, block_range, seed)


def plain_payload(x, mode, settings, offsets):
    """Encode with loops; matrix and padding follow section 2."""
    n, c, h, w = x.shape
    rounding = "down" if mode is Mode.BLPA else "stochastic" if settings.stochastic else "nearest"
    encoder = Encoder(settings.bits, settings.step_log2, rounding, settings.seed)
    if mode is Mode.ACTNN:
        values = [int(value) for value in x.flatten()]
        return encoder.actnn(values + [values[-1]] * (-len(values) % 256))
    if mode is Mode.DIVISION:
        matrix = [[int(value) for value in row] for row in x.reshape(n * c * h, w)]
        matrix = [row + [row[-1]] * (-w % 8) for row in matrix]
        return encoder.division(matrix + [matrix[-1]] * (-len(matrix) % 8), settings.block_range)
    if h * w >= 8:
        matrix = [[int(value) for value in row] for row in x.reshape(n * c, h * w)]
    else:
        matrix, c = [[int(value) for value in x.flatten()]], 1
    beats = []
    for number, row in enumerate(matrix):
        row = row + [0] * (-len(row) % 8)
        if mode is Mode.BLPA:
            row = [max(-32768, min(32767, value - offsets[number % c])) for value in row]
        beats += [row[at : at + 8] for at in range(0, len(row), 8)]
    if mode is Mode.AUTOQUANTZ:
        return encoder.masked(beats + [[0] * 8] * (-len(beats) % 8))
    return encoder.fixed(beats)


@pytest.mark.parametrize(("mode", "block_range"), VARIANTS)
@settings_of_hypothesis(max_examples=40)
@given(shapes, kinds, st.sampled_from(CODE_BITS), st.booleans(), st.integers(0, 2**32 - 1))
def test_payload_is_what_the_page_says(mode, block_range, shape, kind, bits, nearest, seed):
    x = tensor(kind, shape, seed)
    view = MatrixView.of(shape, mode)
    settings = settings_of(mode, block_range, bits, nearest, seed)
    random = torch.Generator().manual_seed(seed)
    offsets = torch.randint(-300, 300, (view.channels,), dtype=torch.int16, generator=random) << 7
    job = compression_job(view, Dtype.FP32, torch.ones(view.channels), how=settings, offsets=offsets)
    expected = plain_payload(x, mode, settings, offsets.tolist())
    unit = TorchBackend()
    assert bytes(unit.compress_tensor(x, view, job).tolist()) == expected
    assert bytes(unit.compress(job, beats_in(x, view)).tolist()) == expected
    least, most = view.payload_bounds(Dtype.FP32, settings)
    assert least <= len(expected) <= most


@pytest.mark.parametrize("bits", CODE_BITS)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["noise", "narrow", "extremes", "constant"]))
def test_found_ranges_cover_their_values(bits, seed, kind):
    """Check that the error is at most a step in blocks and groups of any content, and zero where B + 1 codes suffice."""
    random = torch.Generator().manual_seed(seed)
    spread = {"noise": 65536, "narrow": 2**bits, "extremes": 65536, "constant": 1}[kind]
    least = int(torch.randint(-32768, 32768 - spread + 1, (1,), generator=random))
    x = least + torch.randint(0, spread, (7, 256), generator=random)
    x = (torch.where(x > 0, 32767, -32768) if kind == "extremes" else x).to(torch.int16)
    for settings in (AffineSettings(bits, block_range=True, seed=seed), AffineSettings(bits, stochastic=False)):
        groups = actnn.decode(actnn.encode(x, settings), len(x), settings)
        blocks = x.view(-1, 64)
        by_block = AffineSettings(bits, stochastic=settings.stochastic, block_range=True, seed=settings.seed)
        decoded = division.decode(division.encode(blocks, by_block), len(blocks), by_block)
        for values, back in ((x, groups), (blocks, decoded)):
            spreads = values.amax(1).int() - values.amin(1)
            bound = (-(-spreads // (2**bits - 1))).clamp_min(1).double() * (1 + 1 / 128)
            error = (back - values).abs().amax(1)
            assert (error <= bound).all()
            assert not error[spreads <= 2**bits - 1].any()


@pytest.mark.parametrize("bits", CODE_BITS)
@given(st.integers(0, 2**32 - 1), st.integers(1, 15))
def test_means_and_residuals(bits, seed, step_log2):
    """Check that the error is at most a step within half the codes' range of the mean, and that values beyond saturate."""
    step_log2 = min(step_log2, 16 - bits)
    random = torch.Generator().manual_seed(seed)
    x = torch.randint(-32768, 32768, (5, 1), generator=random) + torch.randint(-400, 401, (5, 64), generator=random)
    x = x.clamp(-32768, 32767).to(torch.int16)
    settings = AffineSettings(bits, step_log2, seed=seed)
    payload = division.encode(x, settings)
    heads = payload.view(5, -1)[:, :2].contiguous().view(torch.int16)[:, 0].int()
    exact = x.double().mean(1)
    assert (heads == (exact + 0.5).floor()).all()
    y = division.decode(payload, 5, settings)
    half = ((2**bits - 1) << step_log2) // 2
    residual = x - heads[:, None]
    inside = (residual.abs() <= half).expand_as(y)
    assert ((y - x).abs() <= 1 << step_log2)[inside].all()
    ends = torch.where(residual > 0, half, -half)
    assert ((y - heads[:, None]) == ends)[~inside].all()
    assert y.abs().max() <= 65536


@pytest.mark.parametrize("bits", CODE_BITS)
def test_sums_at_the_ends_of_the_range(bits):
    for value in (-32768, -1, 0, 32767):
        x = torch.full((1, 64), value, dtype=torch.int16)
        for settings in (AffineSettings(bits, 16 - bits), AffineSettings(bits, block_range=True), AffineSettings(bits, 1)):
            y = division.decode(division.encode(x, settings), 1, settings)
            assert (y - value).abs().max() <= (1 << settings.step_log2)


@pytest.mark.parametrize("bits", CODE_BITS)
@given(st.integers(0, 2**32 - 1), st.integers(0, 15))
def test_zero_stays_zero_and_signs_stay(bits, seed, step_log2):
    step_log2 = min(step_log2, 16 - bits)
    settings = AffineSettings(bits, step_log2, seed=seed)
    zeros = torch.zeros(8, 8, dtype=torch.int16)
    assert not autoquant.decode(autoquant.encode(zeros, settings), 8, settings).any()
    payload = autoquant.encode_masked(zeros, settings)
    assert payload.tolist() == [0] * 8
    assert not autoquant.decode_masked(payload, 1, settings).any()
    x = torch.randint(-32768, 32768, (16, 8), dtype=torch.int16, generator=torch.Generator().manual_seed(seed))
    if step_log2:
        y = blpa.decode(blpa.encode(x, settings), 16, settings)
        assert torch.equal(y > 0, x >= 0)
        assert not (y == 0).any()


@pytest.mark.parametrize("bits", CODE_BITS)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0]))
def test_masks_change_nothing_but_the_length(bits, seed, blocks, zeros):
    random = torch.Generator().manual_seed(seed)
    x = torch.randint(-32768, 32768, (8 * blocks, 8), dtype=torch.int16, generator=random)
    x *= torch.rand(x.shape, generator=random) >= zeros
    settings = AffineSettings(bits, 16 - bits, seed=seed)
    payload = autoquant.encode_masked(x, settings)
    y = autoquant.decode_masked(payload, blocks, settings)
    assert torch.equal(y, autoquant.decode(autoquant.encode(x, settings), 8 * blocks, settings))
    kept = y.ne(0).sum(1)
    assert payload.numel() == 8 * blocks + int((-(-kept * bits // 8)).sum())


@pytest.mark.parametrize(("mode", "block_range"), VARIANTS)
def test_payloads_of_another_length_are_refused(mode, block_range):
    shape = (2, 2, 9, 9)
    view = MatrixView.of(shape, mode)
    settings = settings_of(mode, block_range, 2, True, 0)
    offsets = torch.zeros(view.channels, dtype=torch.int16)
    job = compression_job(view, Dtype.FP32, torch.ones(view.channels), how=settings, offsets=offsets)
    payload = TorchBackend().compress_tensor(tensor("normal", shape, 0), view, job)
    for bad in (payload[:-1], torch.cat((payload, payload[:1])), payload[:0]):
        with pytest.raises(BitstreamError):
            TorchBackend().decompress_tensor(bad, view, job, shape)
        with pytest.raises(BitstreamError):
            TorchBackend().decompress(job, bad)
