"""Registers that example.c, compiled for this machine, writes to a unit, in order."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import cdu_driver
import pytest
from cdu_spec.channel_block import ERROR_FLAGS, JOB_ERRORS
from cdu_spec.config import CONFIGS
from cdu_spec.modes import Coder
from cdu_spec.register_documents import c_header
from cdu_spec.register_types import Channel
from cdu_spec.registers import address, read_only_values, register

EXAMPLE = Path(cdu_driver.__file__).parent / "c" / "example.c"
READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)
WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
PLATFORM = """
#include <stdint.h>
uint32_t (*read_hook)(uint32_t);
void (*write_hook)(uint32_t, uint32_t);
uint32_t cdu_read(uint32_t address) { return read_hook(address); }
void cdu_write(uint32_t address, uint32_t value) { write_hook(address, value); }
void cdu_wait_interrupt(void) { }
"""
OK, NO_UNIT, NO_SPACE, REFUSED, LOST, FAILED, BUSY, EMPTY = range(8)
WRITTEN = ("CODING", "PAYLOAD_CRC", "CONTROL")


class Job(ctypes.Structure):
    """``struct cdu_job``."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("beats", "row_beats", "channel_rows", "bank", "scales")),
        ("shifts", ctypes.c_uint8 * 64),
        ("crc", ctypes.c_uint8),
        ("coder", ctypes.c_uint8),
    )


class Unit:
    """Registers of a configuration; the program that uses them."""

    def __init__(self, folder, config):
        self.values = {address(name): register(name).reset for name in ("ID", "VERSION")}
        self.values |= {address(name): value for name, value in read_only_values(config).items()}
        self.values[address("STATUS", Channel.COMPRESS)] = register("STATUS").reset
        self.written = []
        (folder / "tiny.h").write_text(c_header(), encoding="utf-8")
        (folder / "platform.c").write_text(PLATFORM, encoding="utf-8")
        options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "-I.", "-DCDU_STOP_POLLS=9"]
        subprocess.run(["cc", *options, EXAMPLE, "platform.c", "-o", "example.so"], cwd=folder, check=True)
        self.c = ctypes.CDLL(str(folder / "example.so"))
        self.hooks = {"read_hook": READ(lambda place: self.values.get(place, 0)), "write_hook": WRITE(self._write)}
        for name, function in self.hooks.items():
            ctypes.c_void_p.in_dll(self.c, name).value = ctypes.cast(function, ctypes.c_void_p).value

    def _write(self, place, value):
        self.written.append((place, value))

    def start(self, crc=0, coder=Coder.ZVC):
        """Return the result, and the values written to some of the registers."""
        self.written.clear()
        result = self.c.cdu_start(ctypes.byref(Job(8, 1, 8, 0, 1, (ctypes.c_uint8 * 64)(), crc, coder)))
        names = {address(name, Channel.COMPRESS): name for name in WRITTEN}
        return result, [(names[place], value) for place, value in self.written if place in names]


@pytest.fixture
def unit(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    return lambda **changed: Unit(tmp_path, CONFIGS["tiny"].override(**changed))


class Record(ctypes.Structure):
    """``struct cdu_record``."""

    _fields_ = tuple((name, ctypes.c_uint32) for name in ("job", "bytes", "errors"))


def test_a_job_says_whether_its_payload_has_a_crc_before_it_starts(unit):
    able = unit(payload_crc=1)
    assert able.c.cdu_open(1000) == OK
    assert able.start(1) == (OK, [("PAYLOAD_CRC", 1), ("CONTROL", 1)])
    assert able.start(0) == (OK, [("PAYLOAD_CRC", 0), ("CONTROL", 1)])


def test_a_unit_without_crc_gets_no_job_with_one(unit):
    plain = unit()
    assert plain.c.cdu_open(1000) == OK
    assert plain.start(1) == (REFUSED, [])
    assert not plain.written
    assert plain.start(0) == (OK, [("CONTROL", 1)])


@pytest.mark.parametrize("coders", [("zvc",), ("gmc",), ("zvc", "gmc")])
def test_a_job_names_its_coder_where_there_is_a_choice(unit, coders):
    made = unit(coders=coders)
    assert made.c.cdu_open(1000) == OK
    for coder in Coder:
        named = [("CODING", coder)] if "gmc" in coders else []
        assert made.start(coder=coder) == ((OK, [*named, ("CONTROL", 1)]) if coder.label in coders else (REFUSED, []))


def of_channel(name):
    return address(name, Channel.COMPRESS)


def test_errors_that_records_tell_do_not_interrupt_by_themselves(unit):
    every = {name for name, _ in ERROR_FLAGS}
    for completions, loud in ((0, every), (8, every - set(JOB_ERRORS))):
        made = unit(completions=completions)
        assert made.c.cdu_open(1000) == OK
        written = dict(made.written)
        assert written.get(of_channel("COMPLETION_KEEP"), 0) == bool(completions)
        assert written[of_channel("ERROR_ENABLE")] == register("ERROR_ENABLE").pack(**dict.fromkeys(loud, 1))


@pytest.mark.parametrize(("errors", "result"), [((), OK), (("nonfinite",), OK), (("late_last", "nonfinite"), FAILED)])
def test_a_record_is_taken_once_and_says_what_became_of_its_job(unit, errors, result):
    made = unit(completions=8)
    told = register("COMPLETION_ERRORS").pack(**dict.fromkeys(errors, 1))
    made.values |= {
        of_channel("COMPLETION"): register("COMPLETION").pack(job=65535, waiting=2),
        of_channel("COMPLETION_BYTES"): 1 << 31,
        of_channel("COMPLETION_ERRORS"): told,
        of_channel("ERRORS"): register("ERRORS").pack(**dict.fromkeys(errors, 1)),
    }
    record = Record()
    assert made.c.cdu_take(ctypes.byref(record)) == result
    assert (record.job, record.bytes, record.errors) == (65535, 1 << 31, told)
    assert made.written == [(of_channel("COMPLETION_NEXT"), 1)]


def test_all_jobs_are_lost_with_a_timeout_when_all_records_are_taken(unit):
    made = unit(completions=8)
    made.values[of_channel("ERRORS")] = register("ERRORS").pack(timeout=1, early_last=1)
    assert made.c.cdu_take(ctypes.byref(Record())) == LOST
    assert (of_channel("CONTROL"), register("CONTROL").pack(abort=1, flush=1)) in made.written


def test_a_unit_is_opened_in_any_state(unit):
    """Jobs that an earlier program has left are aborted, and its records dropped, before the first job of this one."""
    made = unit(completions=8)
    made.values[of_channel("COMPLETION")] = register("COMPLETION").pack(job=3, waiting=2)
    assert made.c.cdu_open(1000) == OK
    assert made.written[0] == (of_channel("CONTROL"), register("CONTROL").pack(abort=1, flush=1))
    assert made.written[-2:] == [(of_channel("COMPLETION_NEXT"), 1)] * 2


@pytest.mark.parametrize("state", ["busy", "flushing", "draining"])
def test_a_unit_that_does_not_come_to_rest_is_told(unit, state):
    made = unit(completions=8)
    made.values[of_channel("STATUS")] = register("STATUS").pack(**{state: 1})
    assert made.c.cdu_open(1000) == BUSY
    assert of_channel("WATCHDOG") not in dict(made.written)
    made.values[of_channel("ERRORS")] = register("ERRORS").pack(timeout=1)
    assert made.c.cdu_take(ctypes.byref(Record())) == BUSY


def test_nothing_is_taken_where_no_job_is_under_way(unit):
    made = unit(completions=8)
    assert made.c.cdu_take(ctypes.byref(Record())) == EMPTY
    assert not made.written
