"""Mode mx on compiled RTL: bytes and values of the golden model for every format and rule, training, what is refused."""

import actcodec
import pytest
import torch
from actcodec.backends.job import compression_job, decompression_job
from actcodec.backends.torch_backend import TorchBackend
from cdu_driver import Job as DriverJob
from cdu_driver import JobRefusedError
from cdu_spec import BitstreamError, CduConfig, UserError
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MX_FORMATS, MxSettings, ScaleRule
from cdu_verif.backends.compiled import pieces
from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.backends.compiled.suited import UnsuitedUnitError
from cdu_verif.content.payloads import same_bits
from compiled_units import EVERYTHING
from tools_here import needs_verilator
from torch import nn

pytestmark = needs_verilator
SHAPES = ((1,), (31,), (32,), (257,), (5, 33), (2, 3, 7, 9), (3, 4, 100))


@pytest.fixture(scope="module")
def unit():
    """One unit for all tests: jobs of all formats follow one another."""
    return RtlBackend(EVERYTHING, threads=1)


def _tensor(shape, seed):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random) * torch.exp2(torch.randint(-20, 20, shape, generator=random).float())
    return x.relu() if seed % 2 else x


@pytest.mark.parametrize("rule", ScaleRule)
@pytest.mark.parametrize("name", MX_FORMATS)
def test_every_format_and_rule(unit, name, rule):
    golden, on_unit = (actcodec.codec(name, scale=rule.value, backend=backend) for backend in ("torch", unit))
    for seed, shape in enumerate(SHAPES):
        x = _tensor(shape, seed)
        packed = on_unit.compress(x)
        assert packed.to_bytes() == golden.compress(x).to_bytes()
        assert same_bits(packed.decompress(unit), packed.decompress())


@pytest.mark.parametrize("name", MX_FORMATS)
def test_any_patterns(unit, name):
    """NaN, infinity, subnormal numbers, and payloads of any bytes: the unit has the golden model's rules for all of them."""
    random = torch.Generator().manual_seed(3)
    values = torch.randint(0, 256, (4 * 8 * 1024,), generator=random, dtype=torch.uint8).view(torch.float32)
    view = MatrixView.of(values.shape, Mode.MX)
    for rule in ScaleRule:
        job = compression_job(view, Dtype.FP32, torch.zeros(0), how=MxSettings(name, rule))
        assert torch.equal(unit.compress_tensor(values, view, job), TorchBackend().compress_tensor(values, view, job))
    payload = torch.randint(0, 256, (256 * MX_FORMATS[name].block_bytes,), generator=random, dtype=torch.uint8)
    header = actcodec.codec(name).compress(torch.zeros(256 * 32)).header
    back = decompression_job(header, (), torch.zeros(0))
    assert same_bits(unit.decompress(back, payload), TorchBackend().decompress(back, payload))


@pytest.mark.parametrize("name", ["mxint8", "mxfp6-e2m3", "mxfp4"])
def test_a_large_job_is_cut_into_pieces(unit, name, monkeypatch):
    monkeypatch.setattr(pieces, "LEAST_BEATS", 8)
    monkeypatch.setattr(unit, "threads", 3)
    x = _tensor((11, 331), 1)
    packed = actcodec.codec(name, backend=unit).compress(x)
    assert torch.equal(packed.payload, actcodec.codec(name).compress(x).payload)
    assert same_bits(packed.decompress(unit), packed.decompress())


def test_training_gives_the_same_losses(unit):
    def losses(backend):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        x, labels = torch.randn(4, 3, 8, 8), torch.arange(4)
        found = []
        for name in ("mxint8", "mxfp8-e5m2", "mxfp4"):
            with actcodec.compress_activations(model, name, backend=backend):
                loss = nn.functional.cross_entropy(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses(unit) == losses("torch")


def test_what_is_refused(unit):
    packed = actcodec.codec("mxfp4").compress(torch.ones(64))
    job = decompression_job(packed.header, (), torch.zeros(0))
    for payload in (packed.payload[:-1], torch.cat((packed.payload, packed.payload[:1]))):
        with pytest.raises(BitstreamError, match="payload bytes are not 8 beats of mode mx"):
            unit.decompress(job, payload)
    with pytest.raises(UnsuitedUnitError, match="unit other was built without mode mx"):
        actcodec.codec("mxint8", backend=RtlBackend(CduConfig("other"), threads=1)).compress(torch.ones(64))
    with pytest.raises(UserError, match="use a multiple of 4"):
        DriverJob(Mode.MX, 3, 3, 1, bytes(96), how=MxSettings("mxint8"))
    with pytest.raises(UserError, match="mode mx takes a format of MX"):
        DriverJob(Mode.MX, 4, 4, 1, bytes(128))
    with pytest.raises(UserError, match="mode brc takes no format of MX"):
        DriverJob(Mode.BRC, 4, 4, 1, bytes(128), how=MxSettings("mxint8"))


def test_the_unit_refuses_a_wrong_length_itself(unit):
    """START does, and the next job is right."""
    packed = actcodec.codec("mxfp8-e4m3").compress(torch.randn(64))
    job = decompression_job(packed.header, (), torch.zeros(0))
    with pytest.raises(JobRefusedError, match="bad_length"):
        unit._decompress(job, packed.payload[:-1])
    assert same_bits(packed.decompress(unit), packed.decompress())
