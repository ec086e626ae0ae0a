"""Codec jpeg-base: its stream by an independent decoder, its relation to jpeg-act and sfpr, sizes, corruption."""

import math
import struct
import zlib

import actcodec
import pytest
import torch
from actcodec.backends.backend import Backend
from actcodec.codecs import TorchBackend
from actcodec.training import SavedTensor, policy
from cdu_spec import BitstreamError, UserError, dqt
from cdu_spec.dct import IEEE1180
from cdu_spec.jpeg import ZIGZAG
from cdu_spec.sfpr import PUBLISHED_S
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_jpeg import decode

FORMATS = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}


def tensor(shape, seed=0, smooth=False):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    return x.cumsum(2).cumsum(3) if smooth else x


def with_crc(body):
    return bytes(body) + zlib.crc32(bytes(body)).to_bytes(4, "little")


OPTIONS = [
    {},
    {"huffman": "optimal"},
    {"dqt": "optH", "rounding": "trunc", "S": 1.0},
    {"dqt": "image60", "const_bits": 13, "pass1_bits": 4, "scale_bits": 24},
    {"dqt": "image100", "const_bits": 8, "pass1_bits": 0, "huffman": "optimal"},
    {"dqt": "image1", "scale_bits": 11},
]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=8)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 17), st.integers(1, 40)),
    seed=st.integers(0, 2**31),
    smooth=st.booleans(),
)
def test_independent_decoder_gives_the_same_values(options, dtype, shape, seed, smooth):
    x = (tensor(shape, seed, smooth) * 10.0 ** torch.randint(-3, 2, (1, shape[1], 1, 1))).to(dtype)
    packed = actcodec.codec("jpeg-base", **options).compress(x)
    stream = packed.to_bytes()
    assert len(stream) == packed.nbytes
    form, values = decode(stream)
    assert form == FORMATS[dtype]
    for mine in (packed.decompress(), actcodec.from_bytes(stream).decompress()):
        assert mine.dtype == dtype
        assert torch.equal(mine, torch.from_numpy(values).to(dtype))


@pytest.mark.parametrize("rounding", ["half_away", "trunc"])
@pytest.mark.parametrize("table", ["optsL", "optsH"])
@pytest.mark.parametrize("shape", [(2, 3, 16, 16), (1, 5, 9, 21)])
def test_divisors_of_powers_of_two_are_the_shifts_of_jpeg_act(shape, table, rounding):
    x = tensor(shape, smooth=True)
    names = ("jpeg-base", "jpeg-act")
    codecs = [actcodec.codec(name, dqt=table, rounding=rounding, **IEEE1180._asdict()) for name in names]
    base, act = (codec.compress(x) for codec in codecs)
    assert torch.equal(base.reciprocals, act.reciprocals)
    assert torch.equal(base.decompress(), act.decompress())


def test_without_loss_in_the_frequencies_it_is_sfpr():
    """Check divisors of 1: only the rounding of coefficients is left, which changes few samples, by one."""
    x = tensor((2, 4, 16, 24))
    packed = actcodec.codec("jpeg-base", dqt="image100").compress(x)
    sfpr = actcodec.codec("sfpr", S=PUBLISHED_S).compress(x)
    assert set(packed.header.divisors) == {1}
    assert torch.equal(packed.reciprocals, sfpr.reciprocals)
    difference = (packed.samples().reshape(-1).int() - sfpr.payload.view(torch.int8).int()).abs()
    assert int(difference.max()) <= 1
    assert float(difference.float().mean()) < 0.2


def test_rounding_to_nearest_is_closer_than_truncation():
    x = tensor((4, 8, 16, 16), smooth=True)
    errors = {}
    for rounding in ("half_away", "trunc"):
        packed = actcodec.codec("jpeg-base", rounding=rounding, S=0.99).compress(x)
        errors[rounding] = float((packed.decompress() - x).norm())
    assert actcodec.codec("jpeg-base").rounding == "half_away"
    assert errors["half_away"] < 0.8 * errors["trunc"]


def test_sizes_worked_out_by_hand():
    """Check four blocks of zeros: 6 bits each, 3 bytes; optimal tables have one symbol each, so 2 bits a block, 1 byte."""
    x = torch.zeros(1, 1, 16, 16)
    standard = actcodec.codec("jpeg-base").compress(x)
    assert standard.payload.tolist() == [0b00101000, 0b10100010, 0b10001010]
    assert standard.nbytes == 20 + 16 + 64 + 4 + 3 + 4
    optimal = actcodec.codec("jpeg-base", huffman="optimal").compress(x)
    assert optimal.payload.tolist() == [0]
    assert optimal.nbytes == 20 + 16 + 64 + 2 * (16 + 1) + 4 + 1 + 4
    assert not standard.decompress().any()
    assert not optimal.decompress().any()


def test_optimal_tables_pay_for_themselves_on_a_large_tensor():
    x = tensor((4, 8, 32, 32), smooth=True)
    sizes = {kind: actcodec.codec("jpeg-base", huffman=kind).compress(x).nbytes for kind in ("standard", "optimal")}
    assert sizes["optimal"] < sizes["standard"]


@pytest.mark.parametrize("huffman", ["standard", "optimal"])
@pytest.mark.parametrize(
    "x",
    [
        torch.full((1, 1, 8, 8), 3.0),
        torch.full((2, 3, 9, 11), -1e30),
        torch.full((1, 8, 1, 8), 1e-30),
        torch.where(tensor((2, 2, 16, 16)) > 0, 1.0, -1.0),
        torch.tensor([1.0, -1.0]).repeat(32).view(1, 1, 8, 8),
        tensor((1, 1, 8, 8)),
        tensor((1, 1, 8, 65)),
    ],
    ids=["equal", "negative", "tiny", "extremes", "highest frequency", "one block", "one column more"],
)
def test_edges(x, huffman):
    codec = actcodec.codec("jpeg-base", dqt="image100", S=1.0, huffman=huffman)
    packed = codec.compress(x)
    y = actcodec.from_bytes(packed.to_bytes()).decompress()
    assert torch.equal(codec.decompress(packed), y)
    assert ((y.double() - x.double()).abs().max() / x.double().abs().max()) < 2.6 / 128


class BeatByBeat(Backend):
    """Golden model reached through beats, as in hardware; counts its jobs."""

    def __init__(self):
        self.modes = []

    def compress(self, job, beats):
        self.modes.append(("compress", job.mode.label))
        return TorchBackend().compress(job, beats)

    def decompress(self, job, payload):
        self.modes.append(("decompress", job.mode.label))
        return TorchBackend().decompress(job, payload)


def test_a_backend_computes_sfpr():
    backend = BeatByBeat()
    x = tensor((2, 3, 9, 11))
    packed = actcodec.codec("jpeg-base", backend=backend).compress(x)
    assert packed.to_bytes() == actcodec.codec("jpeg-base").compress(x).to_bytes()
    assert torch.equal(packed.decompress(backend), packed.decompress())
    assert backend.modes == [("compress", "sfpr"), ("decompress", "sfpr")]


def test_the_schedule_switches():
    x = tensor((1, 4, 8, 16))
    schedule = actcodec.codec("jpeg-base", dqt="optLH")
    for epoch, table in ((0, "optL"), (dqt.LH_SWITCH_EPOCH, "optH")):
        schedule.set_epoch(epoch)
        packed = schedule.compress(x)
        assert packed.to_bytes() == actcodec.codec("jpeg-base", dqt=table).compress(x).to_bytes()
        natural = [0] * 64
        for place, divisor in enumerate(packed.header.divisors):
            natural[ZIGZAG[place]] = divisor
        assert tuple(natural) == dqt.NAMED[table]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dqt": "optX"}, "unknown quantisation table 'optX': did you mean optL"),
        ({"huffman": "best"}, "huffman = 'best' is not allowed: use standard or optimal"),
        ({"rounding": "up"}, "rounding = 'up'"),
        ({"S": 0}, "S = 0"),
        ({"const_bits": 14}, "const_bits = 14"),
        ({"scale_bits": 9}, "scale_bits = 9"),
        ({"nonfinite": "ok"}, "nonfinite = 'ok'"),
        ({"backend": "fpga"}, "unknown backend 'fpga'"),
        ({"bits": 8}, "codec 'jpeg-base' has no option 'bits': use S"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UserError, match=message):
        actcodec.codec("jpeg-base", **options)


MAP = (4, 8, 16, 16)


@pytest.mark.parametrize(
    ("producer", "consumer", "shape", "want"),
    [
        ("conv", "norm", MAP, "jpeg-base"),
        ("sum", "conv", MAP, "jpeg-base"),
        ("relu", "relu", MAP, "brc"),
        ("relu", "conv", MAP, "sfpr"),
        ("relu", "pool", MAP, "sfpr"),
        ("relu", "dropout", MAP, "sfpr"),
        ("conv", "norm", (4, 8, 4, 4), "sfpr"),
        ("softmax", "loss", (4, 8), None),
    ],
)
def test_the_papers_column(producer, consumer, shape, want):
    chosen = policy("jpeg-base", dqt="optH", S=1.0).choose(SavedTensor(producer, consumer, shape, torch.float32))
    assert (chosen and chosen.name) == want
    assert want in (None, "brc") or chosen.S == 1.0
    assert want != "jpeg-base" or chosen.dqt == "optH"


def test_gradients_through_the_plug_in():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    x = tensor((2, 2, 16, 16), smooth=True).requires_grad_()
    # The square would not do, because batch normalisation makes it nearly independent of the weights.
    wanted = torch.randn(2, 4, 16, 16)
    with actcodec.compress_activations(model, "jpeg-base", dqt="image100") as stats:
        loss = (model(x * 1.0) * wanted).mean()
    loss.backward()
    mine = model[0].weight.grad.clone()
    model.zero_grad()
    (model(x * 1.0) * wanted).mean().backward()
    assert "jpeg-base" in {record.codec for record in stats.records}
    assert stats.ratio > 2
    assert 0 < float((mine - model[0].weight.grad).norm() / model[0].weight.grad.norm()) < 0.2


def stream_of(huffman="standard"):
    return actcodec.codec("jpeg-base", huffman=huffman).compress(tensor((1, 2, 9, 11))).to_bytes()


def read(stream):
    """Decode; return None when refused. Any other exception is a failure."""
    try:
        return actcodec.decompress(actcodec.from_bytes(stream))
    except BitstreamError:
        return None


@pytest.mark.parametrize("huffman", ["standard", "optimal"])
def test_every_flipped_byte_cut_and_addition_is_noticed(huffman):
    stream = stream_of(huffman)
    for place in range(len(stream)):
        for flip in (0x01, 0x80, 0xFF):
            bad = bytearray(stream)
            bad[place] ^= flip
            assert read(bytes(bad)) is None, (place, flip)
        assert read(stream[:place]) is None
    assert read(stream + b"\0") is None
    assert read(stream[1:]) is None


@pytest.mark.parametrize("huffman", ["standard", "optimal"])
def test_flips_under_a_right_checksum_never_crash(huffman):
    """Check that the decoder accepts the stream, with values in the header's shape, or refuses it."""
    body = stream_of(huffman)[:-4]
    refused = 0
    for place in range(len(body)):
        for flip in (0x01 << place % 8, 0xFF):
            bad = bytearray(body)
            bad[place] ^= flip
            result = read(with_crc(bad))
            refused += result is None
            assert result is None or result.numel() == math.prod(struct.unpack_from("<4I", bad, 20))
    assert refused > 60


@settings(max_examples=200)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4), st.integers(0, 2**64 - 1))
def test_giant_shapes_are_refused_before_memory_is_taken(shape, payload_bytes):
    stream = stream_of()
    head = stream[:12] + struct.pack("<Q4I", payload_bytes, *shape)
    result = read(with_crc(head + stream[36:-4]))
    assert result is None or result.numel() <= 256 * len(stream)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_arbitrary_bytes(data):
    read(b"CDJ\x1a" + data)
    read(with_crc(b"CDJ\x1a\x01" + data))
