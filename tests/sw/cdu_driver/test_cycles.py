"""The performance model beside compiled RTL with and without an engine, beside the rates of a unit, and as it is delivered."""

import random
import re
import shutil
import subprocess

import pytest
import torch
from actcodec.codecs import codec
from cdu.dma.axi4 import BOUNDARY_BYTES, BURST_WORDS
from cdu_driver import Driver, cycles, run
from cdu_driver.cycles import cycles_files, job_cycles
from cdu_spec import CduConfig, UserError, geometry
from cdu_spec.coding import checked
from cdu_spec.config_rules import OWN_CLOCKS
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import JPEG_GMC, MASK_BYTES, Coder, Mode
from cdu_spec.mx import MX_FORMATS
from cdu_spec.register_types import Channel
from cdu_verif.backends.compiled.backend import RtlBackend
from cdu_verif.backends.compiled.device import CompiledDevice
from cdu_verif.backends.compiled.dma_backend import DmaBackend
from cdu_verif.backends.compiled.worker import Worker
from cdu_verif.stimulus.rates import rows_per_cycle
from tools_here import needs_verilator

#: Error that is allowed: a share of the cycles, or for short jobs as many cycles: 4, and with masks the 8 of a block, as the
#: model knows the bytes of all blocks together and not those of the last one.
SHARE, CYCLES, BLOCK_CYCLES = 0.02, 4, geometry.BLOCK_SIDE
LATENCIES = (0, 10, 40, 100, 200)
EVERY_MODE = tuple(mode.label for mode in Mode)
#: The unit of tests/verif/backends/test_dma_backend.py, which is compiled once for both.
CONFIG = CduConfig(dma_bits=128, modes=(*CduConfig().modes, "mx"))
#: Every mode with a CDU and with four; everything that adds cycles, in half duplex; no alignment buffer, a narrow memory.
ENGINES = {
    "tiny": CduConfig(dma_bits=128, modes=EVERY_MODE),
    "four CDUs": CduConfig(cdus=4, dma_bits=512, modes=EVERY_MODE),
    "half duplex": CduConfig(
        **dict.fromkeys(("register_slices", "dct_stages", "multiplier_stages", "payload_crc"), 1),
        cdus=2,
        duplex="half",
        dma_bits=256,
        value_format="bf16",
        modes=EVERY_MODE,
        coders=("zvc", "gmc"),
    ),
    "no tiles": CduConfig(cdus=8, dma_bits=64, dma_words=128, modes=("sfpr", "sfpr+zvc", "brc", "bypass", "mx")),
}
ALONE = {"tiny": CduConfig(), "four CDUs": CduConfig(cdus=4), "no tiles": CduConfig(cdus=2, modes=("sfpr", "brc", "bypass"))}


def random_jobs(config, backend, jobs, seed):
    """Compress and decompress so many random tensors in every mode and with every coder; return them with their payloads."""
    chosen, generator, done = random.Random(seed), torch.Generator().manual_seed(seed), []
    for mode in (*config.built_modes, *([JPEG_GMC] if config.has_gmc else [])):
        for _ in range(jobs):
            limits = (64, 96) if chosen.random() < 0.5 else (12, 20)
            shape = (chosen.randint(1, 4), chosen.randint(1, 12), *(chosen.randint(1, limit) for limit in limits))
            values = torch.randn(shape, generator=generator).to(
                getattr(torch, {"fp32": "float32", "bf16": "bfloat16"}[config.value_format])
            )
            label = chosen.choice(list(MX_FORMATS)) if mode is Mode.MX else getattr(mode, "label", mode)
            used = codec(label, backend=backend)
            packed = used.compress(values.relu() if chosen.random() < 0.5 else values)
            used.decompress(packed)
            done.append((mode, shape, packed.payload.numel()))
    return done


def check(found):
    """Every one of (model, simulation, job) is as near as promised; print the worst ones and those of each mode."""
    table = {}
    for model, simulation, job in found:
        table.setdefault(job[:2], []).append((abs(model - simulation) / simulation, model - simulation))
    for kind, errors in table.items():
        print(*kind, f"{len(errors)} jobs, at most {max(errors)[0]:.2%} ({max(errors)[1]} cycles)")
    few = {mode.label: BLOCK_CYCLES if mode.has_zvc else CYCLES for mode in Mode}
    assert not [entry for entry in found if abs(entry[0] - entry[1]) > max(few[entry[2][0]], SHARE * entry[1])]
    assert sum(model for model, *_ in found) == pytest.approx(sum(simulation for _, simulation, _ in found), rel=SHARE / 4)


def behind_engine(config, latencies, jobs, seed):
    found = []
    for latency in latencies:
        backend = DmaBackend(config, latency)
        random_jobs(config, backend, jobs, seed + latency)
        found += beside_model(backend)
    return found


def beside_model(backend):
    """Return (model, simulation, job) of what a backend has computed."""
    found, latency = [], backend.latency
    for job in backend.took:
        if (job.coder, job.channel) == (Coder.GMC, Channel.DECOMPRESS):
            continue  # refused
        options = {"coder": job.coder, "addresses": job.addresses}
        model = job_cycles(backend.config, job.channel, job.mode, job.shape, job.payload_bytes, latency, **options)
        found.append((model, job.cycles, (job.mode.label, job.channel.value, latency, job.shape, job.payload_bytes)))
    return found


class Started(CompiledDevice):
    """A device whose words wait until their job has had its START, and the cycles from the first of them to the last one."""

    def __init__(self, unit):
        super().__init__(unit)
        self.waiting, self.took = [], []

    async def send(self, port, packet):
        self.waiting.append((port, packet))

    async def wait_interrupt(self):
        self.unit.run(100)
        begin = self.unit.cycle
        for port, packet in self.waiting:
            await super().send(port, packet)
        self.waiting.clear()
        (result,) = (packets[0] for packets in self._expected.values() if packets)
        while not result.ended:
            self._run("nothing comes", until_packet=True)
        self.took.append(self.unit.cycle - begin)
        await super().wait_interrupt()


def alone(config, jobs, seed):
    worker, backend = Worker(config), RtlBackend(config, threads=1)
    device = Started(worker.unit)
    worker._driver = Driver(device)
    run(worker._driver.open())
    backend._idle[config.dtype].put(worker)
    done = random_jobs(config, backend, jobs, seed)
    assert len(device.took) == 2 * len(done)
    took, found = iter(device.took), []
    for mode, shape, payload_bytes in done:
        for channel in Channel:
            model = job_cycles(config, channel, mode, shape, payload_bytes)
            found.append((model, next(took), (mode.label, channel.value, shape)))
    return found


@needs_verilator
def test_jobs_behind_the_engine_take_what_they_take_in_simulation():
    check(behind_engine(CONFIG, (0, 70), 3, seed=4711))


@needs_verilator
@pytest.mark.parametrize("shape", [(3, 2, 12, 4), (3, 1, 12, 8), (3, 2, 3, 15)])
def test_words_that_wait_for_scales_leave_room_for_a_burst(shape):
    """Two words in the engine's register slice decide whether another burst is requested before the scales come."""
    backend = DmaBackend(CONFIG, 70)
    codec("sfpr", backend=backend).compress(torch.randn(shape, generator=torch.Generator().manual_seed(4712)))
    check(beside_model(backend))


@needs_verilator
def test_jobs_of_a_unit_alone_take_what_they_take_in_simulation():
    check(alone(CduConfig(), 3, seed=4712))


@needs_verilator
@pytest.mark.campaign
@pytest.mark.parametrize("name", ENGINES)
def test_200_random_jobs_behind_an_engine(name):
    config = ENGINES[name]
    found = behind_engine(config, LATENCIES, -(-20 // len(config.modes)), seed=4780)
    assert len(found) >= 200
    check(found)


@needs_verilator
@pytest.mark.campaign
@pytest.mark.parametrize("name", ALONE)
def test_200_random_jobs_of_a_unit_alone(name):
    check(alone(ALONE[name], -(-100 // len(ALONE[name].modes)), seed=4770))


@pytest.mark.parametrize("cdus", [1, 4])
@pytest.mark.parametrize("channel", Channel)
@pytest.mark.parametrize("mode", CduConfig().built_modes)
def test_a_unit_alone_has_the_rate_that_benches_hold(mode, channel, cdus):
    """Rows of 8 values per cycle: one per CDU, in bypass what the packed port takes (cdu_verif.stimulus.rates)."""
    config, times = CduConfig(cdus=cdus), []
    for samples in (8, 16):
        view = MatrixView.of((samples, 4, 32, 64), mode)
        payload = view.payload_bounds(config.dtype, checked(mode, None))[0]
        times.append((view.beats, job_cycles(config, channel, mode, (samples, 4, 32, 64), payload)))
    (beats, first), (more, second) = times
    assert (more - beats) / (second - first) == pytest.approx(rows_per_cycle(config, mode), rel=0.02)


def test_long_jobs_are_continued_at_their_rate():
    """The rest of a job beyond 2**19 cycles is not counted: four times the samples take four times as long."""
    small, large = (
        job_cycles(CONFIG, Channel.COMPRESS, Mode.JPEG_ACT, (samples, 16, 56, 56), samples * 16 * 56 * 56 // 4, 40)
        for samples in (16, 64)
    )
    assert small < 1 << 19 < large
    assert large / small == pytest.approx(4, rel=0.005)


def counted(monkeypatch, quiet, job, latency):
    """Return the cycles of a job by a model that counts to the end, and waits for memory without a move step by step."""
    sources = cycles._sources()
    for name, text in sources.items():
        text, steps = re.subn(r"MOST_STEPS = .*?,", "MOST_STEPS = uint64_t(1) << 50,", text)
        sources[name], waits = re.subn(r"QUIET = \d+;", f"QUIET = uint64_t({quiet});", text)
        assert steps == waits == (name == "cdu_cycles.hpp")
    with monkeypatch.context() as patch:
        patch.setattr(cycles, "_sources", lambda: sources)
        patch.setattr(cycles, "_library", cycles._library.__wrapped__)
        return job_cycles(*job, latency)


@pytest.mark.parametrize("latency", [0, 70, 600, 3000, 20_000, 10**6])
@pytest.mark.parametrize("words", [64, 512])
@pytest.mark.parametrize("channel", Channel)
@pytest.mark.parametrize("mode", [Mode.SFPR_ZVC, Mode.JPEG_ACT])
def test_the_rate_of_long_jobs_is_that_of_the_whole_job_at_every_latency(monkeypatch, mode, channel, words, latency):
    job = CONFIG.override(dma_words=words), channel, mode, (128, 64, 28, 28), 128 * 64 * 28 * 28 // 3
    assert job_cycles(*job, latency) == pytest.approx(counted(monkeypatch, 512, job, latency), rel=SHARE / 2)


@pytest.mark.parametrize("latency", [600, 20_000])
@pytest.mark.parametrize("payload_bytes", [1, 3_000])
@pytest.mark.parametrize("channel", Channel)
def test_waits_for_memory_are_passed_over_without_a_difference(monkeypatch, channel, payload_bytes, latency):
    for config, mode in ((ENGINES["four CDUs"], Mode.JPEG_ACT), (ENGINES["no tiles"], Mode.SFPR)):
        job = config, channel, mode, (2, 40, 15, 6), payload_bytes
        assert job_cycles(*job, latency) == counted(monkeypatch, 1 << 62, job, latency)


@pytest.mark.parametrize("latency", [140_000, 300_000])
def test_the_rate_of_long_jobs_is_taken_behind_their_first_rows(latency):
    """A memory that answers late moves the whole job, also beyond the cycles that are counted."""
    job = CONFIG, Channel.COMPRESS, Mode.SFPR, (256, 16, 28, 28), 256 * 16 * 28 * 28
    late = job_cycles(*job, latency) - latency
    assert late > job_cycles(*job, 0) * 0.99


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("payload_bytes", [1, 2_900])
def test_a_payload_of_any_length_has_a_number_of_cycles(mode, payload_bytes):
    for bits in (64, 512):
        config = CduConfig(cdus=3, dma_bits=bits, modes=EVERY_MODE)
        assert job_cycles(config, Channel.DECOMPRESS, mode, (2, 4, 15, 6), payload_bytes, 50) > 8 * payload_bytes // bits


def test_the_constants_of_the_model_are_those_of_the_specification():
    text = "".join(path.read_text(encoding="utf-8") for path in cycles.SOURCES.values())
    found = {name: int(value) for name, value in re.findall(r"\b([A-Z_]+) = (\d+)[,;]", text)}
    assert found["ROW"] == geometry.LANES
    assert found["BLOCK_ROWS"] == geometry.BLOCK_SIDE
    assert found["TILE_BLOCKS"] == geometry.TILE_BLOCKS
    assert found["MASK"] == MASK_BYTES
    assert (found["BURST_WORDS"], found["BOUNDARY"], found["WRITE_WORDS"]) == (BURST_WORDS, BOUNDARY_BYTES, 2 * BURST_WORDS)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_what_is_delivered_gives_the_same_in_a_program(tmp_path, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    for name, text in cycles_files(CONFIG, "mine").items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(
        '#include "mine_timing.hpp"\n#include <cstdio>\n'
        "int main() {\n"
        "    const cdu::JobTiming job{cdu::DECOMPRESS, 2, 2, 3, 1, 35, 250};\n"
        '    std::printf("%d %d", int(cdu::cycles(cdu::mine_timing, job, 40)), int(cdu::cycles(cdu::mine_timing, job)));\n}\n',
        encoding="utf-8",
    )
    options = ["-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([compiler, *options, "main.cpp", "-o", "program"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    job = CONFIG, Channel.DECOMPRESS, Mode.SFPR_ZVC, (2, 3, 5, 7), 250
    assert done.stdout.split() == [str(job_cycles(*job, 40)), str(job_cycles(*job))]


@pytest.mark.parametrize(("clocks", "delivered"), [(("registers",), True), (("packed",), False), (OWN_CLOCKS, False)])
def test_no_model_is_delivered_where_python_refuses_one(clocks, delivered):
    clocked = CONFIG.override(dma_bits=0, own_clocks=clocks, reset_kind="async")
    assert bool(cycles_files(clocked, "mine")) == delivered
    job = clocked, Channel.COMPRESS, Mode.SFPR, (1, 1, 8, 8), 64
    if delivered:
        assert job_cycles(*job) > 0
        return
    with pytest.raises(UserError, match="is not modelled: use none, or registers"):
        job_cycles(*job)


@pytest.mark.parametrize("latency", [None, 40])
@pytest.mark.parametrize("shape", [(2**64, 1, 1, 1), (-1, 3, 4, 5), (0,), (), (2, 3, 0, 5), (2**40, 2, 2, 2), (2**26 * 8,)])
def test_shapes_that_no_job_has_are_refused(shape, latency):
    wanted = r"has \d+ rows of 8 values with its padding, and a job takes 67108863: divide the tensor"
    if min(shape, default=0) < 1:
        wanted = re.escape(str(shape)[:-1].rstrip(",")) + r"\) is not allowed: use one or more extents, each 1 or more"
    with pytest.raises(UserError, match=f"a tensor of shape .*{wanted}"):
        job_cycles(CONFIG, Channel.COMPRESS, Mode.SFPR, shape, 64, latency)


def test_numbers_that_no_job_has_are_refused():
    job = CONFIG, Channel.COMPRESS, Mode.SFPR, (1, 1, 8, 8)
    most, latency = 8 * (8 * 4 + 1) + 4, 2**32 - 1
    for size in (0, most + 1, 10**12, 2**64 + 64):
        with pytest.raises(UserError, match=f"a payload of {size} bytes is not allowed: use 1 to {most} for shape"):
            job_cycles(*job, size)
    for cycle in (-1, latency + 1, 2**64):
        with pytest.raises(UserError, match=f"a latency of {cycle} cycles is not allowed: use 0 to {latency}"):
            job_cycles(*job, 64, cycle)
    assert latency < job_cycles(*job, most, latency) < 5 * latency
    for place, size in enumerate((1, 64, 1)):
        for address in (-1, (1 << 40) - size + 1, 1 << 64):
            addresses = [0, 0, 0]
            addresses[place] = address
            with pytest.raises(UserError, match=f"address {address:#x} of the .* is not allowed: use 0 to 2\\*\\*40 - {size}"):
                job_cycles(*job, 64, 40, addresses=tuple(addresses))
            addresses[place] = (1 << 40) - size
            assert job_cycles(*job, 64, 40, addresses=tuple(addresses)) > 40
    with pytest.raises(UserError, match=r"jpeg-act takes tensors of shape \(N, C, H, W\), not \(8, 8\)"):
        job_cycles(CONFIG, Channel.COMPRESS, Mode.JPEG_ACT, (8, 8), 64)
    most = (1, 1, 1, 2**26 * 8 - 64)
    assert job_cycles(CONFIG, Channel.COMPRESS, Mode.SFPR, most, 2**29, latency) < 1 << 63


def test_what_is_not_there_is_refused_in_a_sentence(monkeypatch):
    job = Mode.SFPR, (1, 1, 8, 8)
    with pytest.raises(UserError, match="has no mode division: use one of sfpr, "):
        job_cycles(CONFIG, Channel.COMPRESS, Mode.DIVISION, (1, 1, 8, 8), 64)
    with pytest.raises(UserError, match="has no coder gmc: use one of zvc"):
        job_cycles(CONFIG, Channel.COMPRESS, Mode.JPEG_ACT, (1, 1, 8, 8), 64, coder=Coder.GMC)
    with pytest.raises(UserError, match="decompression of coder gmc is not modelled, because its rate depends on the values"):
        job_cycles(ENGINES["half duplex"], Channel.DECOMPRESS, Mode.JPEG_ACT, (1, 1, 8, 8), 64, coder=Coder.GMC)
    with pytest.raises(UserError, match="unit tiny has no DMA engine"):
        job_cycles(CduConfig(), Channel.COMPRESS, *job, 64, 40)
    with pytest.raises(UserError, match="own_clocks = values is not modelled: use none, or registers"):
        job_cycles(CduConfig(own_clocks=("values",), reset_kind="async"), Channel.COMPRESS, *job, 64)
    monkeypatch.setenv("CXX", "no-such-compiler")
    cycles._library.cache_clear()
    with pytest.raises(UserError, match=r"no-such-compiler of \$CXX, which the performance model needs"):
        job_cycles(CONFIG, Channel.COMPRESS, *job, 64, 40)
