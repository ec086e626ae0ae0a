"""Large tensors in pieces: the bytes and values of the whole tensor at once, whatever the pieces."""

import actcodec
import pytest
import torch
from actcodec.backends import streamed_backend
from actcodec.backends.job import decompression_job
from actcodec.backends.named import backend
from actcodec.backends.streamed_backend import StreamedBackend
from actcodec.golden.channel_statistics import channel_edges, channel_moments, channel_sums, squared_errors
from actcodec.golden.sfpr import NonFiniteError, channel_maxima
from cdu_spec.bitstream import BitstreamError
from cdu_spec.modes import STREAM_NAMES
from cdu_tools.mapped import MappedFiles

#: Rows that are shorter and longer than a piece, with padding and without, that share blocks or not; maps with odd heights.
SHAPES = [(2, 3, 9, 17), (1, 2, 7, 3000), (2, 3, 1501), (20, 8, 7, 7), (9001,), (3, 5, 5, 16)]
OPTIONS = [
    *((name, {}) for name in STREAM_NAMES),
    ("division", {"range": "channel", "bits": 4}),
    ("autoquantz", {"bits": 4}),
    ("actnn", {"rounding": "nearest"}),
    ("sfpr", {"nonfinite": "saturate"}),
    ("jpeg-act", {"dqt": "uniform-32", "rec": 0.375}),
]


class Counted:
    """Progress that counts the pieces."""

    def __init__(self):
        self.steps = 0

    def begin(self, what, total=None):
        self.total = total

    def step(self):
        self.steps += 1


@pytest.fixture(params=["torch", "auto"])
def streamed(request, monkeypatch):
    """A backend to which every tensor is large, and one that does the same at once."""
    monkeypatch.setattr(streamed_backend, "LARGE_BYTES", 1)
    monkeypatch.setattr(streamed_backend, "PIECE_VALUES", 1 << 10)
    whole = backend(request.param)
    progress = Counted()
    return StreamedBackend(whole, MappedFiles(), progress), whole, progress


def tensor(shape, dtype=torch.float32):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
    return torch.where(values > -0.6, 3 * values, 0.0).to(dtype)


@pytest.mark.parametrize(("name", "options"), OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pieces_make_the_bytes_and_values_of_the_whole(streamed, name, options, dtype):
    pieces, whole, progress = streamed
    tried = 0
    for shape in SHAPES:
        x, at_once = tensor(shape, dtype), actcodec.codec(name, backend=whole, **options)
        if at_once.takes(shape):
            expected = at_once.compress(x)
            found = actcodec.codec(name, backend=pieces, **options).compress(x)
            assert found.to_bytes() == expected.to_bytes(), shape
            integers = torch.int32 if dtype is torch.float32 else torch.int16
            assert torch.equal(found.decompress(pieces).view(integers), expected.decompress(whole).view(integers)), shape
            tried += 1
    assert tried >= 4
    assert progress.steps > 4 * tried


@pytest.mark.parametrize("values", [torch.nan, -torch.inf])
def test_values_that_are_not_finite_are_counted_in_the_whole_tensor(streamed, values):
    pieces, whole, _ = streamed
    x = tensor((3, 5, 40, 40))
    x[1, 2, 3, 4] = x[2, 3, 0, 0] = x[2, 3, 39, 39] = values
    for name in ("sfpr", "blpa"):
        with pytest.raises(NonFiniteError) as expected:
            actcodec.codec(name, backend=whole).compress(x)
        with pytest.raises(NonFiniteError) as found:
            actcodec.codec(name, backend=pieces).compress(x)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("name", ["sfpr+zvc", "jpeg-gmc", "autoquantz"])
@pytest.mark.parametrize("change", [1, -1])
def test_a_payload_that_does_not_end_where_its_blocks_do_is_refused(streamed, name, change):
    pieces, whole, _ = streamed
    packed = actcodec.codec(name, backend=whole).compress(tensor((1, 2, 40, 40)))
    size = packed.payload.numel() + change
    payload = torch.cat((packed.payload, torch.zeros(1, dtype=torch.uint8)))[:size]
    view, header = packed.header.view, packed.header
    job = decompression_job(header, packed.shifts, packed.reciprocals, packed.offsets)
    with pytest.raises(BitstreamError, match="blocks do not end where the payload ends"):
        pieces.decompress_tensor(payload, view, job, header.shape)


def test_small_tensors_go_through_at_once():
    used = StreamedBackend(backend("torch"), None)
    x = tensor((1, 2, 16, 16))
    assert actcodec.codec("blpa", backend=used).compress(x).to_bytes() == actcodec.codec("blpa").compress(x).to_bytes()


@pytest.mark.parametrize("statistic", [channel_edges, channel_moments, channel_sums, squared_errors, channel_maxima])
@pytest.mark.parametrize("shape", [(7, 3, 50), (1, 300, 40), (2, 2, 3001)])
def test_statistics_are_those_of_the_whole(streamed, statistic, shape):
    pieces, whole, _ = streamed
    x = tensor(shape)
    edges = whole.run(channel_edges, x)
    more = {channel_moments: edges, channel_sums: edges, squared_errors: (torch.full((shape[1],), 0.25, dtype=torch.float64),)}
    expected, found = (one.run(statistic, x, *more.get(statistic, ())) for one in (whole, pieces))
    for one, other in zip(*((part if isinstance(part, tuple) else (part,)) for part in (found, expected)), strict=True):
        assert torch.equal(one, other)


def test_a_conversion_sees_pieces(streamed):
    pieces, _, _ = streamed
    x, seen = tensor((3, 5000)), []

    def halve(part):
        seen.append(part.numel())
        return (part / 2).half()

    assert torch.equal(pieces.converted(x, halve), (x / 2).half())
    assert max(seen) <= 1 << 10
