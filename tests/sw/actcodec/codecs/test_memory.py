"""Memory that the golden model takes beyond its input, and refusals before memory is taken."""

import os
import re
import subprocess
import sys
import tracemalloc

import actcodec
import pytest
import torch
from actcodec.codecs.compressed import OversizeError
from actcodec.golden import bitstream, block_starts, entropy_decoder, gmc, jpeg_base
from cdu_spec.bitstream import BitstreamError, Header
from cdu_spec.modes import JPEG_GMC, MODE_CODECS, Dtype, Mode
from cdu_tools import memory
from torch.profiler import ProfilerActivity, profile

#: Bytes taken beyond the input, in units of the tensor; constant parts are not counted.
DECODING, ENCODING = 2.0, 3.0
DECODING_JPEG_BASE = 3.0


def peak(work):
    """Return the most bytes that torch's and numpy's allocators held at one time during a call, and its result."""
    tracemalloc.start()
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
            result = work()
        most_of_numpy = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most + most_of_numpy, result


@pytest.fixture(scope="module", autouse=True)
def _profiler():
    """Import the modules of torch's profiler before they could be counted."""
    with profile(activities=[ProfilerActivity.CPU]):
        torch.zeros(1)


@pytest.mark.parametrize("name", [*MODE_CODECS, JPEG_GMC])
def test_the_golden_model_works_in_pieces(name, monkeypatch):
    monkeypatch.setattr(block_starts, "_WINDOW_BYTES", 1 << 13)
    monkeypatch.setattr(gmc, "_PIECE_BLOCKS", 1 << 8)
    codec = actcodec.codec(name)
    codec.compress(torch.zeros(1, 8, 8, 8)).decompress()
    # The slope between two sizes excludes constant parts. Rows and maps need padding.
    sizes, peaks = [], []
    for samples in (4, 10):
        x = torch.randn(samples, 15, 60, 60, generator=torch.Generator().manual_seed(0)).half()
        encoding, packed = peak(lambda x=x: codec.compress(x))
        decoding, back = peak(packed.decompress)
        assert back.shape == x.shape
        sizes.append(x.nbytes)
        peaks.append((encoding, decoding))
    grown = sizes[1] - sizes[0]
    encoding, decoding = ((after - before) / grown for before, after in zip(*peaks, strict=True))
    assert decoding <= DECODING
    assert encoding <= ENCODING


def test_jpeg_base_is_read_in_pieces(monkeypatch):
    monkeypatch.setattr(entropy_decoder, "_PIECE_BLOCKS", 1 << 6)
    monkeypatch.setattr(entropy_decoder, "_CHUNK_BYTES", 1 << 12)
    monkeypatch.setattr(jpeg_base, "_CHUNK_BLOCKS", 1 << 6)
    tensors = [torch.randn(samples, 15, 60, 60, generator=torch.Generator().manual_seed(0)) for samples in (2, 5)]
    packed = [actcodec.codec("jpeg-base").compress(x) for x in tensors]
    packed[0].decompress()
    before, after = (peak(one.decompress)[0] for one in packed)
    assert (after - before) / (tensors[1].nbytes - tensors[0].nbytes) <= DECODING_JPEG_BASE


@pytest.mark.parametrize("shape", [(1, 1, 8, 30_000), (1, 3, 300, 320), (250_000,)])
def test_pieces_of_wide_matrices_are_small(shape, monkeypatch):
    monkeypatch.setattr(block_starts, "_WINDOW_BYTES", 1 << 13)
    monkeypatch.setattr(gmc, "_PIECE_BLOCKS", 1 << 8)
    for name in ("jpeg-act", JPEG_GMC, "autoquantz"):
        codec = actcodec.codec(name)
        if not codec.fits(shape):
            continue
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        decoding, back = peak(codec.compress(x).decompress)
        assert decoding <= DECODING * back.nbytes + (6 << 20)


def test_streams_of_large_tensors_are_refused():
    packed = actcodec.codec("brc").compress(torch.zeros(1 << 16))
    stream = packed.to_bytes()
    assert len(stream) < 1 << 14
    assert torch.equal(actcodec.from_bytes(stream, 1 << 18).decompress(), torch.zeros(1 << 16))
    with pytest.raises(OversizeError, match=r"shape \(65536\) has 262144 bytes: 262143 are allowed"):
        actcodec.from_bytes(stream, (1 << 18) - 1)
    base = actcodec.codec("jpeg-base").compress(torch.zeros(1, 1, 64, 64)).to_bytes()
    with pytest.raises(OversizeError, match="has 16384 bytes: 100 are allowed"):
        actcodec.from_bytes(base, 100)


def test_the_size_is_looked_at_before_anything_else():
    header = Header(Mode.BRC, Dtype.FP32, (1 << 31, 1 << 31), (1 << 59))
    with pytest.raises(OversizeError, match="has 18446744073709551616 bytes"):
        actcodec.from_bytes(header.pack(), 1 << 40)
    with pytest.raises(BitstreamError, match="truncated"):
        actcodec.from_bytes(header.pack())


def test_what_a_process_may_have(tmp_path):
    whole = memory.usable_bytes()
    assert 1 << 20 < whole <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory.tensor_bytes() == whole // 4
    program = "import resource; from cdu_tools import memory; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)); "
    program += "print(memory.usable_bytes())"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert 100 << 20 < int(told) < 400 << 20
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one" / "memory.max").write_text("12345\n")
    (tmp_path / "one" / "two" / "memory.max").write_text("max\n")
    assert list(memory._along(tmp_path, "/one/two", "memory.max")) == [12345]
    assert list(memory._along(tmp_path, "/absent", "memory.max")) == []


LIMITED = """
import resource, sys
from pathlib import Path
import torch, numpy, actcodec, rich.markup
from cdu_cli.main import main
page = resource.getpagesize()
used = int(Path("/proc/self/statm").read_text().split()[0]) * page
room = 48 << 20  # less than the tensor alone
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
main()
"""


@pytest.mark.parametrize(
    ("options", "told"),
    [([], r"has 67108864 bytes: \d+ are allowed"), (["--max-bytes", "9999999999"], "memory does not suffice")],
)
def test_a_limit_of_the_address_space(tmp_path, options, told):
    stream = tmp_path / "x.cdu"
    header, nothing = Header(Mode.BRC, Dtype.FP16, (1 << 25,), 1 << 22), torch.zeros(0)
    payload = torch.zeros(header.payload_bytes, dtype=torch.uint8)
    stream.write_bytes(b"".join(bitstream.serialise(header, (), nothing, payload, nothing.to(torch.int16))))
    command = [sys.executable, "-c", LIMITED, "decompress", str(stream), str(tmp_path / "out.npy"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("cdu: error: ")
    assert re.search(told, line)
    assert [path.name for path in tmp_path.iterdir()] == ["x.cdu"]
