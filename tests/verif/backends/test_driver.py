"""Reference driver on a compiled unit: results, queueing, errors and recovery."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from cdu_driver import Driver, JobFailedError, JobLostError, JobRefusedError, RecoveryError, run
from cdu_driver import Job as DriverJob
from cdu_spec import Mode
from cdu_spec.ports import PORTS
from cdu_spec.register_types import Channel
from cdu_tools.errors import UserError
from cdu_verif.backends.compiled.device import CompiledDevice
from cdu_verif.backends.compiled.unit import Packet
from compiled_units import EVERYTHING, RECORDING, compiled
from tools_here import needs_verilator
from unit_jobs import jobs_of

CONFIG = EVERYTHING
INTEGRATION = Path(__file__).parents[3] / "docs" / "user" / "integration.md"


pytestmark = needs_verilator


class FaultyDevice(CompiledDevice):
    """Device that changes its next packets by port: ``faults[port]`` is called with the bytes."""

    def __init__(self, unit):
        super().__init__(unit)
        self.faults = {}

    async def send(self, port, packet):
        fault = self.faults.pop(port, None)
        if fault is None:
            await super().send(port, packet)
        else:
            for part in fault(bytes(packet)):
                self.unit.queue(port, part)


def _cut(count):
    """Return a fault: a packet that ends ``count`` bytes too early."""
    return lambda raw: [Packet(np.frombuffer(raw[:-count], np.uint8))]


def _prolong(count):
    return lambda raw: [Packet(np.frombuffer(raw + raw[-count:], np.uint8))]


def _stop(count):
    """Return a fault: a source that stops after ``count`` bytes, without TLAST."""
    return lambda raw: [Packet(np.frombuffer(raw[:count], np.uint8), last=False)]


def _nothing(raw):
    return []


@pytest.fixture(scope="module")
def unit():
    return compiled(CONFIG)


@pytest.fixture(scope="module")
def recording_unit():
    return compiled(RECORDING)


@pytest.fixture
def device(unit):
    unit.reset()
    return FaultyDevice(unit)


@pytest.fixture(params=[False, True], ids=["scale ports", "scale registers"])
def driver(device, request):
    made = Driver(device, scales_by_registers=request.param)
    run(made.open())
    return made


@pytest.fixture
def watched(device):
    made = Driver(device, watchdog=3000)
    run(made.open())
    return made


def _check(queue, pairs):
    jobs, wanted = zip(*pairs, strict=True)
    results = run(queue.run(jobs))
    assert [bytes(result.data) == golden for result, golden in zip(results, wanted, strict=True)] == [True] * len(jobs)
    return results


def _queue(driver, channel):
    return driver.compress if channel is Channel.COMPRESS else driver.decompress


@pytest.mark.parametrize("channel", Channel, ids=lambda channel: channel.value)
def test_jobs_of_all_modes_in_a_row(driver, channel):
    """20 jobs, 3 at a time, with four shift tables in two banks."""
    results = _check(_queue(driver, channel), list(jobs_of(20, channel=channel)))
    assert not any(result.nonfinite for result in results)


def test_what_the_unit_says_about_itself(driver):
    assert driver.dtype is CONFIG.dtype
    assert driver.modes == set(CONFIG.built_modes)


def test_both_directions_at_once(driver):
    pairs = {channel: list(jobs_of(6, seed=3, channel=channel)) for channel in Channel}

    async def both():
        for number in range(6):
            for channel in Channel:
                await _queue(driver, channel).submit(pairs[channel][number][0])
            for channel in Channel:
                result = await _queue(driver, channel).collect()
                assert bytes(result.data) == pairs[channel][number][1]

    run(both())


def test_counters(driver):
    pairs = list(jobs_of(5))
    run(driver.compress.clear_counters())
    _check(driver.compress, pairs)
    counters = run(driver.compress.counters())
    assert counters.jobs_done == 5
    assert counters.values == sum(8 * job.beats for job, _ in pairs)
    assert counters.bytes == sum(len(golden) for _, golden in pairs)
    assert 0 < counters.values_per_cycle <= 8
    assert counters.input_stall + counters.input_idle + counters.output_stall <= 2 * counters.cycles
    run(driver.compress.clear_counters())
    assert run(driver.compress.counters()) == type(counters)(*[0] * 7)
    _check(driver.compress, pairs)


def test_a_payload_of_an_impossible_length_is_refused_and_the_others_go_on(driver):
    (good, wanted), (bad, _) = jobs_of(2, (Mode.SFPR,), channel=Channel.DECOMPRESS)
    run(driver.decompress.submit(good))
    with pytest.raises(JobRefusedError, match=r"bad_length: .*check where the payload was cut") as caught:
        run(driver.decompress.submit(DriverJob(**vars(bad) | {"data": bad.data[:-1]})))
    assert caught.value.flags == ("bad_length",)
    assert bytes(run(driver.decompress.collect()).data) == wanted
    _check(driver.decompress, list(jobs_of(4, channel=Channel.DECOMPRESS)))


FAULTS = (
    (Channel.COMPRESS, "input", _cut(64), "early_last"),
    (Channel.COMPRESS, "input", _prolong(640), "late_last"),
    (Channel.COMPRESS, "input", _cut(5), "keep"),
    (Channel.COMPRESS, "scales", _cut(16), "scale_missing"),
    (Channel.COMPRESS, "scales", _prolong(8), "scale_surplus"),
    (Channel.DECOMPRESS, "input", _cut(20), "early_last"),
    (Channel.DECOMPRESS, "input", _prolong(300), "late_last"),
    (Channel.DECOMPRESS, "scales", _cut(8), "scale_missing"),
    (Channel.DECOMPRESS, "scales", _prolong(16), "scale_surplus"),
    (Channel.COMPRESS, "scales", _nothing, "timeout"),
    (Channel.COMPRESS, "input", _nothing, "timeout"),
    (Channel.DECOMPRESS, "input", _nothing, "timeout"),
)
# A job without input must be the last one: any other would get the input of the next
POSITIONS = [(*fault, position) for fault in FAULTS for position in (0, 2) if position or fault[3] != "timeout"]


@pytest.mark.parametrize(
    ("channel", "port", "fault", "flag", "position"),
    POSITIONS,
    ids=[f"{channel.value} {port} {flag} {position}" for channel, port, _, flag, position in POSITIONS],
)
def test_faults_lose_the_jobs_under_way_and_nothing_else(watched, device, channel, port, fault, flag, position):
    queue = _queue(watched, channel)
    pairs = [(job, golden) for job, golden in jobs_of(12, (Mode.SFPR_ZVC, Mode.JPEG_ACT), seed=5, channel=channel)]
    pairs = [(job, golden) for job, golden in pairs if len(job.scales) >= 12][:3]

    async def spoiled():
        for number, (job, _) in enumerate(pairs):
            if number == position:
                device.faults[getattr(PORTS[channel], port)] = fault
            await queue.submit(job)
        for _ in pairs:
            await queue.collect()

    with pytest.raises(JobLostError) as caught:
        run(spoiled())
    assert flag in caught.value.flags
    assert f"lost in the {channel.value} channel: job" in str(caught.value)
    assert queue.under_way == 0
    device.faults.clear()
    _check(queue, list(jobs_of(6, seed=6, channel=channel)))


@pytest.mark.parametrize(
    ("channel", "port", "fault", "flag"),
    [fault for fault in FAULTS if fault[3] != "timeout"],
    ids=[f"{channel.value} {port} {flag}" for channel, port, _, flag in FAULTS if flag != "timeout"],
)
def test_faults_lose_their_job_alone_where_there_are_records(recording_unit, channel, port, fault, flag):
    recording_unit.reset()
    device = FaultyDevice(recording_unit)
    driver = Driver(device, watchdog=3000, scales_by_registers=port == "input")
    run(driver.open())
    assert driver.completions == RECORDING.completions
    queue = _queue(driver, channel)
    pairs = [
        (job, golden) for job, golden in jobs_of(16, (Mode.SFPR_ZVC, Mode.JPEG_ACT), seed=5, channel=channel, config=RECORDING)
    ]
    pairs = [(job, golden) for job, golden in pairs if len(job.scales) >= 12][:5]

    async def spoiled():
        outcomes = []
        for number, (job, _) in enumerate(pairs):
            if number == 1:
                device.faults[getattr(PORTS[channel], port)] = fault
            if queue.under_way == 3:
                outcomes += await queue.outcomes([])
            await queue.submit(job)
        return outcomes + await queue.outcomes([])

    outcomes = run(spoiled())
    for number, (outcome, (job, golden)) in enumerate(zip(outcomes, pairs, strict=True)):
        if number == 1:
            assert isinstance(outcome, JobFailedError)
            assert flag in outcome.flags
            assert str(outcome).startswith(f"{job} failed in the {channel.value} channel: {outcome.flags[0]}: ")
        else:
            assert bytes(outcome.data) == golden
            assert outcome.payload_bytes == len(golden if channel is Channel.COMPRESS else job.data)
    device.faults[getattr(PORTS[channel], port)] = fault
    with pytest.raises(JobFailedError):
        run(queue.run([job for job, _ in pairs]))
    _check(queue, list(jobs_of(6, (Mode.SFPR_ZVC, Mode.JPEG_ACT), seed=6, channel=channel, config=RECORDING)))


def test_a_source_that_stops_in_the_middle(watched, device):
    """The rest of its packet is dropped when it comes; until then the driver reports what it waits for."""
    job, _ = next(jobs_of(1, (Mode.JPEG_ACT,), seed=2))
    port = PORTS[Channel.COMPRESS].input
    device.faults[port] = _stop(len(job.data) // 64 * 32)
    run(watched.compress.submit(job))
    with pytest.raises(RecoveryError, match=f"waits for the rest of a packet: end it with TLAST at port {port}"):
        run(watched.compress.collect())
    rest = device.unit.queue(port, Packet(np.zeros(100, np.uint8)))
    device.unit.run(100)
    assert rest.ended
    run(watched.compress.recover())
    _check(watched.compress, list(jobs_of(5)))


def test_values_that_are_not_finite_are_told(driver):
    pairs = list(jobs_of(2, (Mode.SFPR,)))
    values = np.frombuffer(pairs[0][0].data, "<f4").copy()
    values[3] = np.nan
    run(driver.compress.submit(DriverJob(**vars(pairs[0][0]) | {"data": values.tobytes()})))
    assert run(driver.compress.collect()).nonfinite
    assert not _check(driver.compress, pairs)[0].nonfinite


def test_a_new_driver_finds_the_unit_in_the_middle_of_jobs(driver, device):
    for job, _ in list(jobs_of(3)):
        run(driver.compress.submit(job))
    again = Driver(device)
    run(again.open())
    for channel in Channel:
        _check(_queue(again, channel), list(jobs_of(5, channel=channel)))


def test_misuse_is_told(driver):
    (job, _), *_ = jobs_of(1)
    with pytest.raises(UserError, match="no job is under way"):
        run(driver.compress.collect())
    with pytest.raises(UserError, match="bytes are no"):
        run(driver.compress.submit(DriverJob(**vars(job) | {"data": job.data[:-1]})))
    with pytest.raises(UserError, match="an empty payload"):
        run(driver.decompress.submit(DriverJob(**vars(job) | {"data": b""})))
    run(driver.compress.submit(job))
    with pytest.raises(UserError, match="cannot be cleared"):
        run(driver.compress.clear_counters())
    run(driver.compress.collect())


def test_snippet_of_the_integration_page(device):
    (snippet,) = re.findall(r"^```python\n(.*?)^```", INTEGRATION.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    jobs, wanted = zip(*jobs_of(2), strict=True)
    names = {"device": device, "jobs": jobs}
    code = compile(snippet, str(INTEGRATION), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

    async def page():
        await eval(code, names)

    run(page())
    assert [bytes(result.data) for result in names["results"]] == list(wanted)
