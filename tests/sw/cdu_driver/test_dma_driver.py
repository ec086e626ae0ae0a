"""The driver of a unit behind its DMA engine, in C, compiled for this machine, against an engine that is written down here."""

import ctypes
import shutil
import subprocess
from collections import deque
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import cdu_driver
import pytest
from cdu_spec.dma import COMPLETION, DESCRIPTOR, DESCRIPTOR_BYTES, Descriptor, dma_address, dma_register, part
from cdu_spec.dma_documents import dma_c_header
from cdu_spec.modes import Mode
from cdu_spec.register_documents import c_header
from cdu_spec.register_types import Channel
from cdu_spec.registers import address, register

DRIVER = Path(cdu_driver.__file__).parent / "c"
#: Memory as the engine addresses it, above 32 bits, and its bytes.
BASE, SIZE = 0x12_3400_0000, 4096
#: Reads of STATUS after which the driver gives up.
POLLS = 200
CHANNEL = Channel.DECOMPRESS
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
CALL = ctypes.CFUNCTYPE(None)
PLATFORM = """\
#include "dma.h"
uint32_t (*read_hook)(uint32_t);
void (*write_hook)(uint32_t, uint32_t);
void (*wait_hook)(void);
uint32_t cdu_read(uint32_t address) { return read_hook(address); }
void cdu_write(uint32_t address, uint32_t value) { write_hook(address, value); }
void cdu_wait_interrupt(void) { wait_hook(); }
void cdu_memory_publish(const volatile void *memory, uint32_t bytes) { (void)memory; (void)bytes; }
void cdu_memory_fetch(const volatile void *memory, uint32_t bytes) { (void)memory; (void)bytes; }
uint32_t ring_bytes(uint32_t log2, uint32_t line) { return CDU_DMA_RING_BYTES(log2, line); }
"""


class Result(IntEnum):
    """Return values of the driver's functions."""

    OK, NO_UNIT, BAD_RING, FULL, FAILED, LOST, EMPTY, BUSY, REFUSED, NOT_OPEN, NULL = range(11)


def structure(name, **members):
    """A structure of C."""
    return type(name, (ctypes.Structure,), {"_fields_": list(members.items())})


U8, U16, U32, U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
Job = structure(
    "Job",
    **dict.fromkeys(("mode", "value_format", "coder", "point", "payload_crc", "mx_coding"), U8),
    quantizer=U16,
    seed=U32,
    **dict.fromkeys("nchw", U32),
    **dict.fromkeys(("tensor", "stride_n", "stride_c", "stride_h", "scales", "payload"), U64),
    payload_bytes=U32,
    shifts=ctypes.c_void_p,
)
Record = structure("Record", **dict.fromkeys(("job", "tag", "errors", "unit_errors", "cycles", "bytes"), U32))
NUMBERS_OF_RING = ("log2", "line", "given", "taken", "is_open")
Ring = structure("Ring", base=U32, memory=ctypes.c_void_p, address=U64, **dict.fromkeys(NUMBERS_OF_RING, U32))


@dataclass
class Outcome:
    """The outcome of a job: the content of its record, or that there is none."""

    errors: int = 0
    unit_errors: int = 0
    size: int = 0
    lost: bool = False


class Engine:
    """One direction of an engine: a ring in memory, run one job at a time when a caller waits."""

    def __init__(self, memory):
        self.memory, self.values, self.head = memory, {}, 0
        self.identity = {address(name): register(name).reset for name in ("ID", "VERSION")}
        self.outcomes, self.descriptors, self.busy_reads, self.stuck = deque(), [], 0, False

    def value(self, name):
        """A register."""
        return self.values.get(dma_address(name, CHANNEL), 0)

    def read(self, place):
        """A read by the driver; an engine that was stopped counts from 0 again."""
        if not self.value("CONTROL"):
            self.head = 0
        if place in self.identity:
            return self.identity[place]
        if place == dma_address("HEAD", CHANNEL):
            return self.head & 0xFFFFFFFF
        if place == dma_address("STATUS", CHANNEL):
            self.busy_reads -= 1
            return int(self.busy_reads > 0)
        return self.values.get(place, 0)

    def write(self, place, value):
        """A write by the driver; bits of sticky registers are cleared."""
        sticky = [dma_address(name, CHANNEL) for name in ("ERRORS", "INTERRUPT_STATUS")]
        self.values[place] = self.values.get(place, 0) & ~value if place in sticky else value

    def flag(self, name, bit):
        """Set a bit of a sticky register."""
        place = dma_address(name, CHANNEL)
        self.values[place] = self.values.get(place, 0) | dma_register(name).field(bit).mask

    def wait(self):
        """Until the line is high: a job is done when it is not."""
        if self.value("INTERRUPT_STATUS") & self.value("INTERRUPT_ENABLE"):
            return
        if self.head == self.value("TAIL") or not self.value("CONTROL"):
            self.stuck, self.head = True, self.head + 1  # nothing will ever come; the driver is to end all the same
            return
        self.run()

    def run(self):
        """Do the next job."""
        ring = (self.value("RING_HIGH") << 32 | self.value("RING_LOW")) - BASE
        place = ring + self.head % (1 << self.value("RING_SIZE")) * DESCRIPTOR_BYTES
        raw = bytes(self.memory[place : place + DESCRIPTOR_BYTES])
        outcome = self.outcomes.popleft() if self.outcomes else Outcome()
        self.descriptors.append(raw)
        if outcome.lost:
            self.flag("ERRORS", "completion")
            self.flag("INTERRUPT_STATUS", "error")
        else:
            tag = int.from_bytes(raw[4:8], "little")
            numbers = {"job": self.head, "tag": tag, "errors": outcome.errors, "unit_errors": outcome.unit_errors}
            numbers |= {"cycles": 7, "bytes": outcome.size, "done": 1}
            completion = int.from_bytes(raw[80:88], "little") - BASE
            for name, number in numbers.items():
                entry = part(COMPLETION, name)
                begin = completion + entry.offset
                self.memory[begin : begin + entry.size] = number.to_bytes(entry.size, "little")
        self.head += 1
        self.flag("INTERRUPT_STATUS", "job_done")


class Driver:
    """The compiled driver with an engine and memory."""

    def __init__(self, folder):
        (folder / "tiny.h").write_text(c_header() + dma_c_header(), encoding="utf-8")
        (folder / "platform.c").write_text(PLATFORM, encoding="utf-8")
        options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-DCDU_DMA_STOP_POLLS={POLLS}"]
        options += ["-shared", "-fPIC", "-I", folder, "-I", DRIVER]
        library = folder / "driver.so"
        subprocess.run(["cc", *options, DRIVER / "dma.c", folder / "platform.c", "-o", library], check=True)
        self.c = ctypes.CDLL(str(library))
        room = (ctypes.c_uint8 * (2 * SIZE))(*[0xA5] * (2 * SIZE))
        self.memory = (ctypes.c_uint8 * SIZE).from_buffer(room, -ctypes.addressof(room) % SIZE)
        self.engine = Engine(memoryview(self.memory).cast("B"))
        self.hooks = {
            "read_hook": READ(self.engine.read),
            "write_hook": WRITE(self.engine.write),
            "wait_hook": CALL(self.engine.wait),
        }
        for name, function in self.hooks.items():
            ctypes.c_void_p.in_dll(self.c, name).value = ctypes.cast(function, ctypes.c_void_p).value

    def ring(self, log2, offset=0, line=0):
        """A ring that begins so far behind the beginning of memory."""
        base = dma_address("CONTROL", CHANNEL)
        return Ring(base, ctypes.addressof(self.memory) + offset, BASE + offset, log2, line)

    def open(self, ring):
        """Start a ring."""
        return Result(self.c.cdu_dma_open(ctypes.byref(ring)))

    def close(self, ring):
        """Stop a ring."""
        return Result(self.c.cdu_dma_close(ctypes.byref(ring)))

    def submit(self, ring, job, tag):
        """Give a job."""
        return Result(self.c.cdu_dma_submit(ctypes.byref(ring), ctypes.byref(job), U32(tag)))

    def take(self, ring):
        """The next record."""
        record = Record()
        result = Result(self.c.cdu_dma_take(ctypes.byref(ring), ctypes.byref(record)))
        assert not self.engine.stuck, "the driver waits for what will never come"
        return result, record


@pytest.fixture
def driver(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    return Driver(tmp_path)


SHIFTS = bytes(range(24))
NUMBERS = {
    **{"mode": int(Mode.JPEG_ACT), "value_format": 1, "coder": 1, "point": 3, "payload_crc": 1},
    **{"mx_coding": 0x15, "quantizer": 0xA1B2, "seed": 0xC3D4_E5F6},
    **{"n": 2, "c": 3, "h": 5, "w": 0x01020304},
    **{"tensor": BASE + 0x8_0000, "stride_n": 1 << 39, "stride_c": 640, "stride_h": (1 << 40) - 128},
    **{"scales": BASE + 0x9_0000, "payload": BASE + 0xA_0000, "payload_bytes": 0xFEDC_BA98},
}


def job_of(**changed):
    """A job with numbers in which every byte has its place; the buffer of its table lives as long as it does."""
    numbers = NUMBERS | changed
    table = ctypes.create_string_buffer(SHIFTS, len(SHIFTS))
    job = Job(*numbers.values(), ctypes.addressof(table))
    job.table = table
    return job


@pytest.mark.parametrize("line", [0, 32, 128, 256])
def test_descriptors_are_those_of_the_specification_and_the_ring_wraps(driver, line):
    ring, log2 = driver.ring(1, 256, line), 1
    assert driver.open(ring) is Result.OK
    assert driver.engine.value("RING_LOW") | driver.engine.value("RING_HIGH") << 32 == BASE + 256
    assert driver.engine.value("CONTROL") == 1
    for number in range(5):
        records = BASE + 256 + (DESCRIPTOR_BYTES << log2)
        job, tag = job_of(n=number + 1), 0x1000_0000 + number
        driver.engine.outcomes.append(Outcome(size=100 + number))
        assert driver.submit(ring, job, tag) is Result.OK
        result, record = driver.take(ring)
        assert result is Result.OK
        assert (record.job, record.tag, record.errors, record.cycles, record.bytes) == (number, tag, 0, 7, 100 + number)
        place = records + number % 2 * (line or 64)
        wanted = Descriptor(**(NUMBERS | {"n": number + 1}), completion=place, shifts=SHIFTS, tag=tag).pack()
        found = driver.engine.descriptors[-1]
        named = {byte for entry in DESCRIPTOR for byte in range(entry.offset, entry.offset + entry.size)}
        assert all(found[byte] == wanted[byte] for byte in named)
    used = driver.c.ring_bytes(1, line)
    assert used % DESCRIPTOR_BYTES == 0
    assert bytes(driver.memory[:256]) == bytes([0xA5]) * 256, "something in front of the ring was written"
    assert bytes(driver.memory[256 + used :]) == bytes([0xA5]) * (SIZE - 256 - used)


def test_no_job_is_given_before_there_is_a_place(driver):
    ring = driver.ring(1)
    assert driver.open(ring) is Result.OK
    given = [driver.submit(ring, job_of(), tag) for tag in range(3)]
    assert given == [Result.OK, Result.OK, Result.FULL]
    assert driver.engine.value("TAIL") == 2
    assert driver.take(ring)[1].tag == 0
    assert driver.submit(ring, job_of(), 7) is Result.OK
    assert [driver.take(ring)[1].tag for _ in range(2)] == [1, 7]


def test_errors_cost_their_own_job(driver):
    ring = driver.ring(2)
    assert driver.open(ring) is Result.OK
    driver.engine.outcomes.extend(
        [Outcome(errors=0x80, unit_errors=1), Outcome(lost=True), Outcome(size=9), Outcome(lost=True)]
    )
    for tag in range(4):
        assert driver.submit(ring, job_of(), tag) is Result.OK
    result, record = driver.take(ring)
    assert (result, record.errors, record.unit_errors) == (Result.FAILED, 0x80, 1)
    result, record = driver.take(ring)
    assert (result, ring.given, ring.taken) == (Result.LOST, 4, 2), "a lost job is taken, too"
    assert bytes(record) == bytes(ctypes.sizeof(record))
    result, record = driver.take(ring)
    assert (result, record.tag, record.bytes) == (Result.OK, 2, 9)
    assert driver.take(ring)[0] is Result.LOST
    assert driver.engine.value("ERRORS") == 0
    assert driver.submit(ring, job_of(), 5) is Result.OK
    assert driver.take(ring)[1].tag == 5


def test_records_that_came_before_anybody_waited_are_taken(driver):
    ring = driver.ring(2)
    assert driver.open(ring) is Result.OK
    for tag in range(3):
        assert driver.submit(ring, job_of(), tag) is Result.OK
        driver.engine.run()
    assert [driver.take(ring)[1].tag for _ in range(3)] == [0, 1, 2]


def test_a_job_without_a_table_has_zeros(driver):
    ring = driver.ring(0)
    assert driver.open(ring) is Result.OK
    job = job_of()
    job.shifts = None
    assert driver.submit(ring, job, 1) is Result.OK
    driver.take(ring)
    assert driver.engine.descriptors[0][88:112] == bytes(24)


def test_what_is_no_unit_or_no_ring_is_refused(driver):
    assert driver.open(driver.ring(1, 64)) is Result.BAD_RING
    driver.engine.identity[address("VERSION")] = register("VERSION").pack(major=2, minor=0)
    assert driver.open(driver.ring(1)) is Result.NO_UNIT
    driver.engine.identity = dict.fromkeys(driver.engine.identity, 0)
    assert driver.open(driver.ring(1)) is Result.NO_UNIT
    assert driver.engine.value("CONTROL") == 0


def test_a_ring_comes_to_rest(driver):
    ring = driver.ring(1)
    assert driver.open(ring) is Result.OK
    driver.engine.busy_reads = 5
    assert driver.close(ring) is Result.OK
    assert driver.engine.value("CONTROL") == 0
    assert driver.engine.busy_reads == 0


def test_a_close_that_is_busy_is_called_again(driver):
    """The ring takes no more jobs from then on; the interrupt goes with the close that is the last."""
    ring = driver.ring(1)
    assert driver.open(ring) is Result.OK
    assert driver.submit(ring, job_of(), 3) is Result.OK
    driver.engine.busy_reads = 2 * POLLS
    assert driver.close(ring) is Result.BUSY
    assert (ring.is_open, ring.given, ring.taken) == (0, 1, 0)
    assert driver.engine.value("INTERRUPT_ENABLE")
    assert driver.submit(ring, job_of(), 4) is Result.NOT_OPEN
    driver.engine.run()
    result, record = driver.take(ring)
    assert (result, record.tag) == (Result.OK, 3)
    assert [driver.close(ring) for _ in range(2)] == [Result.OK, Result.OK]
    assert not driver.engine.value("INTERRUPT_ENABLE")
    assert driver.take(ring)[0] is Result.EMPTY
