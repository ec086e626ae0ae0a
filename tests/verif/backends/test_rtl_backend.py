"""Codecs on compiled RTL: the same bytes and values as the golden model, and what the backend refuses."""

import json
import random
import subprocess
import sys
import threading
from itertools import product

import actcodec
import numpy as np
import pytest
import torch
import typer
from actcodec.backends.job import beats_in, compression_job
from actcodec.backends.named import backend as backend_of
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs.centring import compress_centred
from cdu_cli import compress as compress_command
from cdu_cli import train as train_command
from cdu_spec import BitstreamError, CduConfig, UserError
from cdu_spec.affine import AffineSettings
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Dtype, Mode
from cdu_spec.register_types import Channel
from cdu_spec.registers import address, register
from cdu_verif.backends.checked_backend import CheckedBackend
from cdu_verif.backends.compiled import pieces
from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.backends.compiled.suited import UnsuitedUnitError
from cdu_verif.backends.compiled.unit import CompiledUnit
from compiled_units import EVERYTHING
from tools_here import needs_verilator
from typer.testing import CliRunner

MODES = ("jpeg-act", "sfpr", "sfpr+zvc", "brc", "bypass")
SHAPES = (
    *((1, 1, 1, 1), (1, 1, 8, 8), (1, 1, 1, 70), (2, 3, 8, 8), (3, 5, 7, 11), (1, 2, 13, 33), (2, 7, 5, 64), (1, 3, 40, 41)),
    *((7,), (1000,), (5, 9), (4, 3, 100), (1, 513, 2, 4), (2, 2, 3, 3, 3)),
)


pytestmark = needs_verilator


@pytest.fixture(scope="module")
def tiny():
    """One unit for all tests: jobs of all kinds follow one another."""
    return RtlBackend(CduConfig(), threads=1, every_format=True)


@pytest.fixture
def _cut_small_jobs(monkeypatch):
    monkeypatch.setattr(pieces, "LEAST_BEATS", 1)


def _tensor(shape, seed=0):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return x.relu() if seed % 2 else x


def _same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and torch.equal(x.view(torch.uint8), y.view(torch.uint8))


def _compare(name, x, unit, **options):
    golden, rtl = actcodec.codec(name, **options), actcodec.codec(name, **options, backend=unit)
    packed = golden.compress(x)
    assert rtl.compress(x).to_bytes() == packed.to_bytes()
    assert _same(rtl.decompress(packed), golden.decompress(packed))


@pytest.mark.parametrize("name", MODES)
def test_every_shape(tiny, name):
    for seed, shape in enumerate(SHAPES):
        if actcodec.codec(name).takes(shape):
            _compare(name, _tensor(shape, seed), tiny)


@pytest.mark.campaign
def test_a_file_with_clocks_and_a_port_for_another_format(tmp_path):
    (tmp_path / "unit.toml").write_text(
        'modes = ["brc"]\nown_clocks = ["registers"]\nreset_kind = "async"\nvalue_port_bits = 2048\n', encoding="utf-8"
    )
    _compare("brc", _tensor((2, 3, 8, 8)).half(), backend_of(f"rtl:{tmp_path / 'unit.toml'}"))


#: Without JPEG, which knows nothing of number formats and is most of what is compiled.
OF_FORMATS = ("sfpr", "brc", "bypass")
WITH_JPEG = [pytest.param(name, marks=pytest.mark.campaign) for name in ("jpeg-act", "sfpr+zvc")]


@pytest.mark.parametrize("name", [*OF_FORMATS, *WITH_JPEG])
def test_every_shape_of_another_number_format(name):
    """A backend of every format compiles the unit of the one that comes."""
    unit = RtlBackend(CduConfig(modes=OF_FORMATS if name in OF_FORMATS else MODES), threads=1, every_format=True)
    for seed, shape in enumerate(SHAPES):
        if actcodec.codec(name).takes(shape):
            _compare(name, _tensor(shape, seed).to(torch.bfloat16), unit)


@pytest.mark.parametrize("name", ["sfpr", "jpeg-act"])
def test_channels_far_from_zero_are_centred_before_the_unit(tiny, name):
    x = _tensor((2, 3, 8, 8))
    x[:, 1] += 40
    golden, rtl = (compress_centred(x, actcodec.codec(name, backend=backend)) for backend in ("torch", tiny))
    assert rtl.left.to_bytes() == golden.left.to_bytes()
    assert torch.equal(rtl.centres.values, golden.centres.values)
    assert _same(rtl.decompress(), golden.decompress())


AFFINE = (
    *(("division", {"bits": bits, "range": kind}) for bits, kind in ((2, "channel"), (1, "block"), (8, "channel"))),
    *(
        (name, {"bits": bits})
        for name, bits in (("actnn", 2), ("blpa", 4), ("autoquant", 8), ("autoquantz", 4), ("autoquantz", 2))
    ),
)


@pytest.fixture(scope="module")
def everything():
    """Two units with every mode and both coders of jpeg-act."""
    return RtlBackend(EVERYTHING, threads=2)


@pytest.mark.parametrize(("name", "options"), AFFINE, ids=[f"{name} {options}" for name, options in AFFINE])
@pytest.mark.parametrize("shape", [(2, 3, 8, 40), (3, 5, 7, 11), (1, 64, 16, 16), (2, 3, 2, 3)])
def test_affine_modes(everything, name, options, shape):
    x = _tensor(shape, seed=len(shape))
    on_unit, golden = actcodec.codec(name, backend=everything, **options), actcodec.codec(name, **options)
    mine, theirs = on_unit.compress(x), golden.compress(x)
    assert mine.to_bytes() == theirs.to_bytes()
    assert _same(on_unit.decompress(mine), golden.decompress(theirs))


def test_acgcs_policy_runs_on_a_unit(everything):
    """Error bounds that are learnt in the first step choose the bits of the second: on the unit as in the golden model."""
    x = _tensor((4, 3, 8, 8))
    found = []
    for backend in (everything, "torch"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 2, 3)
        )
        policy = actcodec.training.policy("autoquantz", interval=1, backend=backend)
        for _ in range(2):
            model.zero_grad()
            with actcodec.compress_activations(model, policy):
                y = model(x)
            y.backward(_tensor(y.shape, seed=2))
        found.append((policy.layers, [parameter.grad.tolist() for parameter in model.parameters()]))
    assert found[0] == found[1]
    assert all(layer.error is not None for layer in found[0][0])


@pytest.mark.parametrize("shape", [(2, 3, 8, 40), (3, 5, 7, 11), (1, 64, 16, 16)])
def test_first_pass(everything, shape):
    x, view = _tensor(shape), MatrixView.of(shape, Mode.DIVISION)
    k = torch.full((view.channels,), 4096.0)
    job = compression_job(view, Dtype.FP32, k, how=AffineSettings(statistics=True))
    beats = beats_in(x, view)
    assert torch.equal(everything.compress(job, beats), TorchBackend().compress(job, beats))


@pytest.fixture(scope="module")
def halves():
    """A unit that differs from ``tiny`` in most: directions by turns, two CDUs, another number format."""
    return RtlBackend(CduConfig("halves", cdus=2, duplex="half", value_format="fp16"), threads=1)


@pytest.mark.campaign  # `cdu verify` has such units, with every mode and error
@pytest.mark.parametrize("name", MODES)
def test_half_duplex_and_several_lanes(halves, name):
    for seed, shape in enumerate([(2, 3, 8, 8), (1, 2, 13, 33), (3, 5, 7, 11)]):
        _compare(name, _tensor(shape, seed).to(torch.float16), halves)


@pytest.mark.parametrize("dqt", ["optL", "optH", "image50"])
def test_shift_tables(tiny, dqt):
    _compare("jpeg-act", _tensor((2, 4, 16, 24)), tiny, dqt=dqt)


def test_views_that_are_not_contiguous(tiny):
    x = _tensor((4, 6, 10, 16))
    for view in (x.transpose(0, 1), x[:, ::2], x.permute(0, 3, 1, 2), x[1:, :, 3:9]):
        _compare("jpeg-act", view, tiny)
        _compare("sfpr", view, tiny)


def test_saturated_values(tiny):
    x = _tensor((2, 3, 8, 16))
    x[0, 1, 2, 3], x[1, 2, 0, 0], x[1, 0, 7, 7] = float("nan"), float("inf"), -float("inf")
    _compare("sfpr", x, tiny, nonfinite="saturate")
    _compare("sfpr", _tensor((2, 3, 8, 16)), tiny)
    _compare("bypass", x, tiny)


@pytest.mark.usefixtures("_cut_small_jobs")
@pytest.mark.parametrize("name", MODES)
def test_any_number_of_units_gives_the_same(name, monkeypatch):
    units = RtlBackend(CduConfig(), threads=3)
    worked = []
    monkeypatch.setattr(pieces, "piece", lambda *arguments, cut=pieces.piece: worked.append(0) or cut(*arguments))
    for seed, shape in enumerate([(3, 5, 7, 11), (2, 4, 16, 32), (1, 1, 40, 70), (1, 6, 64, 8), (900,)]):
        if actcodec.codec(name).takes(shape):
            _compare(name, _tensor(shape, seed), units)
    assert len(worked) > 12, "the jobs were not cut"


def test_what_is_idle_rests_and_wakes(tiny):
    """Compressing, the three parts of the other direction rest; after a job all six do; results stay the golden model's."""
    x = _tensor((2, 8, 32, 32))
    packed = actcodec.codec("jpeg-act").compress(x)
    _compare("jpeg-act", x, tiny)
    waiting = tiny._idle[Dtype.FP32]
    worker = waiting.get()
    unit = worker.unit
    waiting.put(worker)

    def rested(action):
        cycles, edges = unit.cycle, unit.rested
        action()
        return (unit.rested - edges) / (unit.cycle - cycles)

    codec = actcodec.codec("jpeg-act", backend=tiny)
    for _ in range(3):
        assert 2.5 < rested(lambda: codec.compress(x)) < 3.5
        assert 2.5 < rested(lambda: codec.decompress(packed)) < 3.5
        unit.run(10_000)
        assert rested(lambda: unit.run(1000)) == 6
        _compare("jpeg-act", x, tiny)


def test_as_many_units_as_torch_has_threads(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    counts = []
    monkeypatch.setattr(pieces, "cuts", lambda job, count, cut=pieces.cuts: counts.append(count) or cut(job, count))
    for threads in (None, 2):
        actcodec.codec("sfpr", backend=RtlBackend(CduConfig(), threads)).compress(_tensor((1, 2, 8, 8)))
    assert counts == [3, 2]
    with pytest.raises(UserError, match="0 threads"):
        RtlBackend(CduConfig(), 0)


def test_threads_share_a_backend(tiny):
    tensors = [_tensor((2, 4, 16, 32), seed) for seed in range(4)]
    results = {}

    def work(number):
        results[number] = actcodec.codec("jpeg-act", backend=tiny).compress(tensors[number]).to_bytes()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[number] for number in range(4)] == [actcodec.codec("jpeg-act").compress(x).to_bytes() for x in tensors]


def test_by_name(tmp_path):
    x = _tensor((1, 2, 8, 16))
    for name in ("rtl", "rtl:tiny"):
        _compare("sfpr", x, name)
    file = tmp_path / "mine.toml"
    file.write_text("const_bits = 11\n")
    with pytest.raises(UnsuitedUnitError, match=r"unit mine was built with const_bits = 11, the job needs const_bits = 8"):
        actcodec.codec("jpeg-act", backend=f"rtl:{file}").compress(x)
    with pytest.raises(UserError, match="unknown configuration 'huge'"):
        actcodec.codec("sfpr", backend="rtl:huge")


def test_no_stream_makes_more_units_than_there_are_number_formats(monkeypatch):
    built = set()

    def build(config):
        built.add(config)
        raise ChildProcessError("a unit would be built now")

    monkeypatch.setattr("cdu_verif.backends.compiled.backend.Worker", build)
    through = backend_of("rtl")
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = _tensor((1, 2, 8, 16)).to(dtype)
        for const_bits, pass1_bits in product(range(8, 14), range(5)) if dtype is torch.float32 else ((8, 0), (11, 2), (8, 1)):
            precision = {"const_bits": const_bits, "pass1_bits": pass1_bits}
            stream = actcodec.codec("jpeg-act", **precision).compress(x).to_bytes()
            own = (const_bits, pass1_bits) == (CduConfig.const_bits, CduConfig.pass1_bits)
            with pytest.raises(ChildProcessError if own else UnsuitedUnitError, match="unit"):
                actcodec.from_bytes(stream).decompress(through)
            with pytest.raises(ChildProcessError):  # the unit does SFPR of jpeg-base, and no transform
                actcodec.codec("jpeg-base", **precision).compress(x).decompress(through)
    assert len(built) == 3


@pytest.mark.usefixtures("_cut_small_jobs")
@pytest.mark.parametrize("dqt", ["optL", "optH", "uniform-16", "uniform-64"])
def test_both_coders_with_every_point(everything, dqt):
    for seed, shape in enumerate(((1, 1, 8, 8), (3, 5, 7, 11), (2, 7, 5, 64), (1, 3, 40, 41))):
        for eighths in range(5):
            _compare("jpeg-gmc", _tensor(shape, seed), everything, dqt=dqt, rec=eighths / 8)
            _compare("jpeg-act", _tensor(shape, seed), everything, dqt=dqt, rec=eighths / 8)
    _compare("sfpr+zvc", _tensor((3, 5, 7, 11)), everything)


def test_the_policy_with_exact_signs_runs_on_a_unit(everything):
    """Copies, corrections of their signs and gradients: on the unit as in the golden model."""
    x = _tensor((2, 3, 16, 16))
    found = []
    for backend in (everything, "torch"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            *(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)),
            *(torch.nn.Conv2d(8, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 2, 3)),
        )
        with actcodec.compress_activations(model, actcodec.training.policy("jpeg-gmc", backend=backend)) as stats:
            y = model(x)
        y.backward(_tensor(y.shape, seed=2))
        found.append((stats.bytes_of_everything, [parameter.grad.tolist() for parameter in model.parameters()]))
    assert found[0] == found[1]


def test_gradients_set_the_registers_of_a_unit(everything, monkeypatch):
    """Policy autoshift: tables, modes and points change between layers and steps, and every byte is the golden model's."""
    written, write = [], CompiledUnit.write
    monkeypatch.setattr(CompiledUnit, "write", lambda unit, at, value: written.append((at, value)) or write(unit, at, value))
    found, settings = [], []
    for backend in (CheckedBackend(everything), "torch"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            *(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU()),
            *(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 2, 3)),
        )
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        chosen = actcodec.training.policy(
            "autoshift", backend=backend, interval=1, variance_growth=100.0, modes=["sfpr+zvc", "sfpr", "jpeg-act"]
        )
        for seed in range(5):
            optimizer.zero_grad()
            with actcodec.compress_activations(model, chosen) as stats:
                y = model(_tensor((2, 3, 16, 16), 2 * seed))
            y.backward(_tensor(y.shape, seed=100 + seed) / len(y))
            optimizer.step()
            settings.append([layer.setting for layer in chosen.layers])
            found.append((chosen.layers, stats.bytes_of_everything, [parameter.tolist() for parameter in model.parameters()]))
    assert found[:5] == found[5:]
    assert any(len(set(of_step)) > 1 for of_step in settings), "layers have different settings"
    assert any(len(set(of_layer)) > 2 for of_layer in zip(*settings, strict=True)), "and different ones in different steps"
    modes = {register("MODE").unpack(value)["mode"] for at, value in written if at == address("MODE", Channel.COMPRESS)}
    assert len(modes) > 1
    tables = {value for at, value in written if at in {address(f"SHIFTS{bank}", Channel.COMPRESS) for bank in (0, 1)}}
    assert len(tables) > 1
    coding = {value for at, value in written if at == address("CODING", Channel.DECOMPRESS)}
    assert len({register("CODING").unpack(value)["point"] for value in coding}) > 1


def test_damaged_blocks_of_gmc_do_not_stop_a_unit(everything):
    """Bytes that no encoder writes decode as in the golden model; heads that do not fit are refused; the next job is right."""
    golden = actcodec.codec("jpeg-gmc")
    packed = golden.compress(_tensor((2, 3, 16, 32)))
    rng, decoded, refused = random.Random(1), 0, 0
    for _ in range(240):
        payload = packed.payload.clone()
        for _ in range(rng.randint(1, 3)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        damaged = actcodec.codecs.Compressed(packed.header, packed.shifts, packed.reciprocals, payload)
        try:
            expected = golden.decompress(damaged)
        except BitstreamError:
            refused += 1
            with pytest.raises(BitstreamError):
                damaged.decompress(everything)
        else:
            decoded += 1
            assert _same(damaged.decompress(everything), expected)
    assert decoded > 5
    assert refused > 5
    _compare("jpeg-gmc", _tensor((2, 3, 16, 32)), everything)


def test_payloads_that_do_not_fit(tiny):
    for name in MODES:
        packed = actcodec.codec(name).compress(_tensor((1, 2, 16, 16)))
        for payload in (packed.payload[:-1], torch.cat([packed.payload, packed.payload[:1]])):
            with pytest.raises(BitstreamError):
                actcodec.codecs.Compressed(packed.header, packed.shifts, packed.reciprocals, payload).decompress(tiny)
        _compare(name, _tensor((1, 2, 16, 16)), tiny)


def test_a_mask_that_lies(tiny):
    packed = actcodec.codec("sfpr+zvc").compress(_tensor((1, 2, 16, 16), 1))
    payload = packed.payload.clone()
    payload[0] ^= 1
    with pytest.raises(BitstreamError, match="corrupted stream"):
        actcodec.codecs.Compressed(packed.header, packed.shifts, packed.reciprocals, payload).decompress(tiny)


def test_the_library_is_found_again():
    """Another process does not compile again."""
    code = "from cdu_spec import CduConfig; from cdu_verif.backends.compiled.library import unit; print(unit(CduConfig()))"
    actcodec.codec("sfpr", backend=RtlBackend(CduConfig())).compress(_tensor((1, 1, 8, 8)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def _run(command, *arguments):
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    command.register(app)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_training_through_the_unit(tmp_path):
    arguments = ("--steps", 2, "--seeds", 1, "--batch", 8, "--limit", 64, "--codec", "jpeg-act")
    losses = {}
    for backend in ("torch", "rtl"):
        check = ("--check",) if backend == "rtl" else ()
        result = _run(train_command, *arguments, "--backend", backend, *check, "--json", tmp_path / "r.json", "-o", tmp_path)
        results = json.loads((tmp_path / "r.json").read_text())
        losses[backend] = [run["losses"] for run in results["runs"]]
        assert {run["backend"] for run in results["runs"]} == {backend}
    assert losses["rtl"] == losses["torch"]
    assert "equal to the golden model's:" in result.output


def test_files_through_the_unit(tmp_path):
    array = _tensor((1, 4, 16, 20)).numpy()
    np.save(tmp_path / "in.npy", array)
    for backend in ("torch", "rtl"):
        _run(compress_command, "compress", tmp_path / "in.npy", tmp_path / f"{backend}.cdu", "--backend", backend)
    assert (tmp_path / "rtl.cdu").read_bytes() == (tmp_path / "torch.cdu").read_bytes()
    _run(compress_command, "decompress", tmp_path / "rtl.cdu", tmp_path / "out.npy", "--backend", "rtl", "--check")
    expected = actcodec.decompress(actcodec.from_bytes((tmp_path / "torch.cdu").read_bytes())).numpy()
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    with pytest.raises(UserError, match="--check"):
        _run(compress_command, "compress", tmp_path / "in.npy", tmp_path / "x.cdu", "--backend", "torch", "--check")
