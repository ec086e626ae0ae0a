"""Statistics of peak memory, and of ratios relative to the dtype in use."""

import subprocess
import sys

import actcodec
import pytest
import torch
from torch import nn

MIB = 1 << 20
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


#: In a process of its own: of a large one, pages that nothing uses may go meanwhile.
SINCE_ENTRY = """
import actcodec, torch
from torch import nn

MIB = 1 << 20

def filled(mib):  # pages that are all in use
    return torch.ones(mib * MIB // 4)

filled(256)  # a higher peak, but of before
with actcodec.compress_activations(nn.Identity(), "sfpr", measure_peak=True) as stats:
    small = stats.peak_bytes
    held = filled(64)
    del held
assert small < 16 * MIB, small
within = stats.peak_bytes
assert 60 * MIB < within < 100 * MIB, within
held = filled(160)  # what comes after the forward pass counts as well
del held
assert stats.peak_bytes > 150 * MIB, stats.peak_bytes
with actcodec.compress_activations(nn.Identity(), "sfpr", measure_peak=True) as again:
    pass
assert again.peak_bytes < 16 * MIB, again.peak_bytes
"""


COMPRESSED = """
import actcodec, torch
from torch import nn

model = nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(12)))
x = torch.randn(8192, 512)
peaks = {}
for codec in ("none", "actnn"):
    options = {} if codec == "none" else {"backend": "native"}
    with actcodec.compress_activations(model, codec, measure_peak=True, **options) as stats:
        loss = model(x).square().mean()
    loss.backward()
    peaks[codec] = stats.peak_bytes
    assert "peak memory since the context was entered" in stats.table()
    del loss
    model.zero_grad()
assert peaks["actnn"] < 0.6 * peaks["none"], peaks
"""


@linux
@pytest.mark.parametrize("program", [SINCE_ENTRY, COMPRESSED], ids=["since entry", "compressed"])
def test_the_peak_is_that_since_the_context_was_entered(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nobody_asked():
    with actcodec.compress_activations(nn.Identity(), "sfpr") as stats:
        pass
    assert stats.peak_bytes is None
    assert "peak" not in stats.table()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_ratios_in_the_format_in_use_and_against_float32(dtype):
    model = nn.Linear(64, 64).to(dtype)
    x = torch.randn(64, 64).to(dtype).requires_grad_()
    with actcodec.compress_activations(model, "sfpr") as stats:
        model(x)
    assert stats.ratio == pytest.approx(x.nbytes / stats.bytes_compressed)
    assert stats.ratio_of_float32 == pytest.approx(4 * x.numel() / stats.bytes_compressed)
    assert ("against float32" in stats.table()) == (dtype != torch.float32)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_peak_of_a_cuda_device_is_that_of_its_allocator():
    model = nn.Linear(8, 8).cuda()
    with actcodec.compress_activations(model, "sfpr", measure_peak=True) as stats:
        held = torch.ones(64 * MIB // 4, device="cuda")
        del held
    assert 64 * MIB <= stats.peak_bytes < 80 * MIB
