"""Driver in C on a compiled unit: the example compresses, takes records and recovers."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cdu_driver import Job as DriverJob
from cdu_spec import Mode
from cdu_spec.ports import PORTS
from cdu_spec.register_documents import c_header
from cdu_spec.register_types import Channel, ScaleSource
from cdu_spec.registers import address, register
from cdu_verif.backends.compiled.unit import Packet
from compiled_units import EVERYTHING, RECORDING, compiled
from tools_here import needs_verilator
from unit_jobs import jobs_of

EXAMPLE = Path(__file__).parents[3] / "sw" / "cdu_driver" / "c" / "example.c"

pytestmark = needs_verilator


@pytest.fixture(scope="module")
def unit():
    return compiled(EVERYTHING)


@pytest.fixture(scope="module")
def recording_unit():
    return compiled(RECORDING)


class CJob(ctypes.Structure):
    """``struct cdu_job`` of the example."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("beats", "row_beats", "channel_rows", "bank", "scales")),
        ("shifts", ctypes.c_uint8 * 64),
        ("crc", ctypes.c_uint8),
        ("coder", ctypes.c_uint8),
    )


class CRecord(ctypes.Structure):
    """``struct cdu_record`` of the example."""

    _fields_ = tuple((name, ctypes.c_uint32) for name in ("job", "bytes", "errors"))


OK, NO_UNIT, NO_SPACE, REFUSED, LOST, FAILED = range(6)


class Example:
    """Compiled example.c with a compiled unit as its platform."""

    def __init__(self, folder, unit):
        (folder / "tiny.h").write_text(c_header(), encoding="utf-8")
        # The three functions of the platform call back
        (folder / "platform.c").write_text("""
#include <stdint.h>
uint32_t (*platform_read)(uint32_t);
void (*platform_write)(uint32_t, uint32_t);
void (*platform_wait)(void);
uint32_t cdu_read(uint32_t address) { return platform_read(address); }
void cdu_write(uint32_t address, uint32_t value) { platform_write(address, value); }
void cdu_wait_interrupt(void) { platform_wait(); }
""")
        command = ["cc", "-Wall", "-Wextra", "-Werror", "-pedantic", "-std=c99", "-shared", "-fPIC", "-I.", str(EXAMPLE)]
        subprocess.run([*command, "platform.c", "-o", "example.so"], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / "example.so"))
        number = ctypes.c_uint32
        self._keep = {
            "platform_read": ctypes.CFUNCTYPE(number, number)(unit.read),
            "platform_write": ctypes.CFUNCTYPE(None, number, number)(unit.write),
            "platform_wait": ctypes.CFUNCTYPE(None)(lambda: self._wait(unit)),
        }
        for name, function in self._keep.items():
            ctypes.c_void_p.in_dll(self.library, name).value = ctypes.cast(function, ctypes.c_void_p).value
        self.open, self.start = self.library.cdu_open, self.library.cdu_start

    @staticmethod
    def _wait(unit):
        assert unit.run(100_000, until_interrupt=True) < 100_000, "no interrupt"

    def give_scales(self, raw):
        """Give the scales of a job."""
        self.library.cdu_give_scales(raw, len(raw) // 4)

    def finish(self):
        """Return result, number of jobs, errors."""
        done, errors = ctypes.c_uint32(), ctypes.c_uint32()
        result = self.library.cdu_finish(ctypes.byref(done), ctypes.byref(errors))
        return result, done.value, errors.value

    def take(self):
        """Return the result and the record."""
        record = CRecord()
        result = self.library.cdu_take(ctypes.byref(record))
        return result, record.job, record.bytes, record.errors


@pytest.fixture
def example(tmp_path, unit):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    unit.reset()
    return Example(tmp_path, unit)


def _c_job(job, bank):
    numbers = (job.beats, job.row_beats, job.channel_rows, bank, ScaleSource.REGISTERS)
    return ctypes.byref(CJob(*numbers, (ctypes.c_uint8 * 64)(*job.shifts), 0, job.how.coder))


def test_the_c_example_compresses_and_recovers(example, unit):
    ports = PORTS[Channel.COMPRESS]
    pairs = list(jobs_of(4, (Mode.JPEG_ACT,), seed=9, config=EVERYTHING))
    assert len({job.how.coder for job, _ in pairs}) == 2
    assert example.open(5000) == OK

    def start(job, golden, bank):
        assert example.start(_c_job(job, bank)) == OK
        unit.queue(ports.input, Packet(np.frombuffer(job.data, np.uint8)))
        packet = unit.queue(ports.output, Packet(np.zeros(len(golden) + 200, np.uint8)))
        example.give_scales(job.scales)
        return packet

    for number, (job, golden) in enumerate(pairs):
        packet = start(job, golden, number % 2)
        assert example.finish() == (OK, number + 1, 0)
        while not packet.ended:
            unit.run(100, until_packet=True)
        assert packet.array[: packet.moved].tobytes() == golden

    # An impossible job, a table in use, a queue that is full
    job, golden = pairs[0]
    wrong = DriverJob(**vars(job))
    object.__setattr__(wrong, "beats", job.beats + 8 * job.row_beats - 8 if job.row_beats > 1 else job.beats + 1)
    assert example.start(_c_job(wrong, 0)) == REFUSED
    assert example.start(_c_job(job, 0)) == OK
    assert example.start(_c_job(job, 0)) == NO_SPACE

    # A job without input is ended by the watchdog, and the next job works
    result, done, errors = example.finish()
    assert (result, done) == (LOST, len(pairs))
    assert register("ERRORS").unpack(errors) == {**dict.fromkeys(register("ERRORS").unpack(0), 0), "timeout": 1}
    assert unit.read(address("ERRORS", Channel.COMPRESS)) == 0
    assert not unit.interrupt
    packet = start(job, golden, 0)
    assert example.finish() == (OK, len(pairs) + 1, 0)
    while not packet.ended:
        unit.run(100, until_packet=True)
    assert packet.array[: packet.moved].tobytes() == golden


@pytest.mark.campaign
def test_the_c_example_takes_records(tmp_path, recording_unit):
    """The second of three jobs in a row has too few values; a fourth one gets no input."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    recording_unit.reset()
    example = Example(tmp_path, recording_unit)
    ports = PORTS[Channel.COMPRESS]
    pairs = list(jobs_of(3, (Mode.JPEG_ACT,), seed=9, config=RECORDING))
    assert example.open(20_000) == OK
    packets = []
    for number, (job, golden) in enumerate(pairs):
        while example.start(_c_job(job, number % 2)) == NO_SPACE:
            recording_unit.run(200)
        data = job.data[:-64] if number == 1 else job.data
        recording_unit.queue(ports.input, Packet(np.frombuffer(data, np.uint8)))
        packets.append(recording_unit.queue(ports.output, Packet(np.zeros(len(golden) + 200, np.uint8))))
        example.give_scales(job.scales)
    for number, ((_, golden), packet) in enumerate(zip(pairs, packets, strict=True)):
        result, job, size, errors = example.take()
        assert (result, job, size) == (FAILED if number == 1 else OK, number, packet.moved)
        assert errors == register("COMPLETION_ERRORS").pack(early_last=int(number == 1))
        assert number == 1 or packet.array[: packet.moved].tobytes() == golden
    assert example.start(_c_job(pairs[0][0], 0)) == OK
    assert example.take()[0] == LOST
    assert not recording_unit.read(address("STATUS", Channel.COMPRESS)) & 1
