"""Jobs and beats that cross to the hardware: order of beats, scales of groups; a backend over beats gives the same bytes."""

import actcodec
import pytest
import torch
from actcodec.codecs import (
    Backend,
    TorchBackend,
    beats_in,
    decompression_job,
    group_scales,
    payload_shifts,
    tensor_from_beats,
)
from cdu_spec import BitstreamError, MatrixView, Mode, dqt
from cdu_spec.modes import MODE_CODECS
from hypothesis import given, settings
from hypothesis import strategies as st

shapes = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 11), st.integers(1, 110))


def plain_jpeg_act_beats(x):
    """Return beats in feeding order by loops over strips, tiles of 32 columns, rows and beats."""
    n, c, h, w = x.shape
    matrix = x.reshape(n * c * h, w).tolist()
    strips, width = -(-len(matrix) // 8), -(-w // 8) * 8
    matrix = [row + [0.0] * (width - w) for row in matrix] + [[0.0] * width] * (8 * strips - len(matrix))
    beats = []
    for strip in range(strips):
        for tile in range(0, width, 32):
            for row in range(8 * strip, 8 * strip + 8):
                for column in range(tile, min(tile + 32, width), 8):
                    beats.append(matrix[row][column : column + 8])
    return beats


@given(shapes)
def test_jpeg_act_order(shape):
    x = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float32).view(shape)
    view = MatrixView.of(shape, Mode.JPEG_ACT)
    beats = beats_in(x, view)
    assert beats.shape == (view.beats, 8)
    assert beats.tolist() == plain_jpeg_act_beats(x)
    assert torch.equal(tensor_from_beats(beats, view, shape), x)


LINEAR = [mode for mode in Mode if not mode.in_tiles]


@given(st.sampled_from(LINEAR), shapes)
def test_linear_order(mode, shape):
    x = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float32).view(shape)
    view = MatrixView.of(shape, mode)
    beats = beats_in(x, view)
    expected = []
    for row in x.reshape(view.rows, view.columns).tolist():
        row += [0.0] * (-len(row) % 8)
        expected += [row[i : i + 8] for i in range(0, len(row), 8)]
    expected += [[0.0] * 8] * (view.beats - len(expected))
    assert beats.tolist() == expected
    assert torch.equal(tensor_from_beats(beats, view, shape), x)


@given(shapes)
def test_division_repeats_the_edges(shape):
    x = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float32).view(shape)
    view = MatrixView.of(shape, Mode.DIVISION)
    beats = beats_in(x, view)
    rows = x.reshape(-1, shape[3])
    wide = torch.cat([rows, rows[:, -1:].expand(-1, -shape[3] % 8)], 1)
    whole = torch.cat([wide, wide[-1:].expand(-len(rows) % 8, -1)])
    assert beats.tolist() == plain_jpeg_act_beats(whole[None, None])
    assert torch.equal(tensor_from_beats(beats, view, shape), x)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_actnn_sees_values_in_a_row(shape):
    x = torch.arange(1, torch.Size(shape).numel() + 1, dtype=torch.float32).view(shape)
    view = MatrixView.of(shape, Mode.ACTNN)
    beats = beats_in(x, view)
    flat = x.flatten().tolist()
    assert beats.flatten().tolist() == flat + [flat[-1]] * (-len(flat) % 256)
    assert (view.scale_groups, view.channels) == (1, 1)
    assert torch.equal(tensor_from_beats(beats, view, shape), x)


@given(st.sampled_from(list(Mode)), shapes)
def test_scales_of_groups(mode, shape):
    view = MatrixView.of(shape, mode)
    per_channel = torch.arange(2, 2 + view.channels, dtype=torch.float32)
    mine = group_scales(per_channel, view)
    assert mine.shape == (view.scale_groups,)
    rows_with_padding = -(-view.beats // view.row_beats)
    for row in range(rows_with_padding):
        scale = mine[row // view.channel_rows].item()
        if not mode.has_scales or row // view.channel_rows * view.channel_rows >= view.rows:
            assert scale == (per_channel[-1] if mode is Mode.DIVISION else 1)
        elif row < view.rows:
            assert scale == per_channel[row // view.channel_rows % view.channels]


def test_payload_shifts_are_column_by_column():
    order = payload_shifts(range(64))
    assert order[:10] == (0, 8, 16, 24, 32, 40, 48, 56, 1, 9)
    assert len(payload_shifts(dqt.shifts("optH"))) == 64


class OverBeats(TorchBackend):
    """Golden model that is reached through beats, like a simulated unit."""

    def __init__(self):
        self.jobs = []

    def compress(self, job, beats):
        self.jobs.append(job)
        assert beats.shape == (job.beats, 8)
        return super().compress(job, beats)

    compress_tensor = Backend.compress_tensor
    decompress_tensor = Backend.decompress_tensor


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(MODE_CODECS),
    shapes,
    st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    st.integers(0, 2**31),
)
def test_a_backend_over_beats_gives_the_same(name, shape, dtype, seed):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).relu().to(dtype)
    direct = actcodec.codec(name)
    if not direct.takes(shape):
        return
    unit = OverBeats()
    over_beats = actcodec.codec(name, backend=unit)
    packed = over_beats.compress(x)
    assert packed.to_bytes() == direct.compress(x).to_bytes()  # both draw the random numbers of their first tensor
    assert torch.equal(over_beats.decompress(packed), direct.decompress(packed))
    assert len(unit.jobs) == 1
    back = decompression_job(packed.header, packed.shifts, packed.reciprocals, packed.offsets)
    assert (back.beats, back.row_beats, back.channel_rows) == (
        unit.jobs[0].beats,
        unit.jobs[0].row_beats,
        unit.jobs[0].channel_rows,
    )


@pytest.mark.parametrize("name", MODE_CODECS)
def test_backends_refuse_payloads_that_do_not_fit(name):
    packed = actcodec.codec(name).compress(torch.ones(1, 2, 8, 8))
    job = decompression_job(packed.header, packed.shifts, packed.reciprocals, packed.offsets)
    with pytest.raises(BitstreamError):
        TorchBackend().decompress(job, packed.payload[:-1])


def test_scales_of_one_channel_are_in_memory_for_each_group():
    view = MatrixView.of((3, 1, 8, 16), Mode.JPEG_ACT)
    scales = group_scales(torch.full((1,), 7.0), view)
    assert scales.is_contiguous()
    assert scales.tolist() == [7.0] * 3
