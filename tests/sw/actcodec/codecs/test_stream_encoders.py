"""Promises of docs/reference/bitstream.md on an encoder's bytes: no zeros under masks, unused bits are zero, padding."""

from math import prod

import actcodec
import pytest
import torch
from cdu_verif.stimulus.streams.plain import Matrix
from plain_stream import codes_of, read_affine, read_zvc

BACKENDS = ("torch", "native")
SHAPES = [(1, 1, 1, 1), (2, 3, 3, 5), (1, 3, 3, 13), (2, 2, 9, 17), (1, 1, 16, 24)]
OTHER_SHAPES = [(1,), (19,), (3, 5), (2, 3, 7), (2, 3, 9)]
BITS = (1, 2, 4, 8)


def tensor(shape, kind):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(prod(shape)))
    return {"relu": x.relu(), "far": x + 5, "zeros": x * 0, "sparse": x * (x > 1)}[kind]


def payload_of(name, shape, backend, kind="far", **options):
    return actcodec.codec(name, backend=backend, **options).compress(tensor(shape, kind))


def rows_under_masks(payload, blocks, bits):
    """Return codes and spare bits of every row of every block."""
    place = 0
    for _ in range(blocks):
        mask, place = payload[place : place + 8], place + 8
        for byte in mask:
            count = byte.bit_count()
            size = -(-count * bits // 8)
            row, place = payload[place : place + size], place + size
            yield codes_of(row, count, bits), int.from_bytes(row, "little") >> count * bits
    assert place == len(payload)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["relu", "far", "zeros", "sparse"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_that_is_zero_is_under_a_mask_and_fill_bits_are_zero(shape, kind, backend):
    cases = [("sfpr+zvc", 2, 8, {}), ("jpeg-act", 3, 8, {}), ("jpeg-act", 3, 8, {"dqt": "image90"})]
    cases += [("autoquantz", 10, bits, {"bits": bits, "rounding": how}) for bits in BITS for how in ("stochastic", "nearest")]
    for name, mode, bits, options in cases:
        payload = bytes(payload_of(name, shape, backend, kind, **options).payload.tolist())
        for codes, spare in rows_under_masks(payload, Matrix.of(mode, shape).beats // 8, bits):
            assert all(codes), f"{name}: a zero under a mask"
            assert not spare, f"{name}: a fill bit"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES + OTHER_SHAPES)
def test_unused_bits_of_brc_and_padding_of_bypass_are_zero(shape, backend):
    count = prod(shape)
    ones = actcodec.codec("brc", backend=backend).compress(torch.ones(shape)).payload.tolist()
    assert int.from_bytes(bytes(ones), "little") == 2**count - 1
    for dtype, size in ((torch.float32, 4), (torch.bfloat16, 2), (torch.float16, 2)):
        packed = actcodec.codec("bypass", backend=backend).compress(torch.full(shape, -1.5, dtype=dtype))
        assert len(packed.payload) == 8 * -(-count // 8) * size
        assert not packed.payload[count * size :].any()


def matrix_of(mode, shape, integers):
    """Return integers in order as the rows of the padded matrix, and which of them are real."""
    view = Matrix.of(mode, shape)
    width = 8 * view.row_beats
    rows = [integers[at : at + width] for at in range(0, len(integers), width)]
    return rows, view


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES + OTHER_SHAPES)
def test_padding_of_rows_and_of_the_end_is_zeros(shape, backend):
    """Check values far from zero; an affine code of zero decodes to zero."""
    found = {
        1: [byte - 256 * (byte > 127) for byte in payload_of("sfpr", shape, backend).payload.tolist()],
        2: [
            value
            for block in read_zvc(
                bytes(payload_of("sfpr+zvc", shape, backend).payload.tolist()), Matrix.of(2, shape).beats // 8
            )
            for value in block
        ],
    }
    for bits in (2, 8):
        for mode, name in ((9, "autoquant"), (10, "autoquantz")):
            packed = payload_of(name, shape, backend, bits=bits, rounding="nearest")
            view = Matrix.of(mode, shape)
            quantizer = (bits, packed.header.how.step_log2, 0)
            found[mode, bits] = read_affine(mode, bytes(packed.payload.tolist()), view.rows, view.row_beats, quantizer)
    for key, integers in found.items():
        rows, view = matrix_of(key if isinstance(key, int) else key[0], shape, integers)
        for number, row in enumerate(rows):
            real = view.columns if number < view.rows else 0
            assert not any(row[real:]), key
            assert any(row[:real]) or not real, key


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits", BITS)
def test_padding_of_blpa_is_zeros(bits, backend):
    """Check that the codes of the padding are those of a zero in the same channel."""
    shape = (2, 3, 3, 3)
    x = tensor(shape, "far")
    x[..., 0, 0] = 0
    packed = actcodec.codec("blpa", bits=bits, backend=backend).compress(x)
    rows = [packed.payload.tolist()[at : at + 2 * bits] for at in range(0, 12 * bits, 2 * bits)]
    for row in rows:
        codes = codes_of(bytes(row), 16, bits)
        assert codes[9:] == codes[:1] * 7


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_padding_of_division_repeats_the_last_value_of_a_row_and_the_last_row(shape, backend):
    """Check the padding with the scale of the last channel, with which equal values have equal integers."""
    for bits in BITS:
        packed = payload_of("division", shape, backend, bits=bits, range="block", rounding="nearest")
        view = Matrix.of(6, shape)
        integers = read_affine(6, bytes(packed.payload.tolist()), view.rows, view.row_beats, (bits, 0, 1))
        rows, _ = matrix_of(6, shape, integers)
        assert len(rows) == 8 * -(-view.rows // 8)
        for row in rows:
            assert row[view.columns :] == [row[view.columns - 1]] * (len(row) - view.columns)
        for row in rows[view.rows :]:
            assert row == rows[view.rows - 1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(1,), (19,), (33,), (300,), (2, 3, 9, 17)])
def test_padding_of_actnn_repeats_the_last_value(shape, backend):
    for bits in BITS:
        packed = payload_of("actnn", shape, backend, bits=bits, rounding="nearest")
        count, view = prod(shape), Matrix.of(7, shape)
        integers = read_affine(7, bytes(packed.payload.tolist()), view.rows, 4, (bits, 0, 0))
        assert integers[count:] == [integers[count - 1]] * (len(integers) - count)
        assert len(integers) == 256 * -(-count // 256)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(1, 3, 3, 13), (1, 1, 1, 1), (2, 2, 9, 17)])
def test_padding_of_jpeg_act_is_zeros(shape, backend):
    """Check that the payload is that of the padded matrix as one map, whose largest magnitude is the same."""
    x = tensor(shape, "far")
    x = x / x.abs().amax((0, 2, 3), keepdim=True)
    view = Matrix.of(3, shape)
    whole = torch.zeros(1, 1, 8 * -(-view.rows // 8), 8 * view.row_beats)
    whole[0, 0, : view.rows, : view.columns] = x.reshape(view.rows, view.columns)
    codec = actcodec.codec("jpeg-act", backend=backend)
    assert torch.equal(codec.compress(x).payload, codec.compress(whole).payload)
