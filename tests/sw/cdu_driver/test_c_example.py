"""What example.c writes to a unit, compiled for this machine: registers in the order in which they are written."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import cdu_driver
import pytest
from cdu_spec.config import CONFIGS
from cdu_spec.register_documents import c_header
from cdu_spec.registers import Channel, address, read_only_values, register

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
OK, NO_UNIT, NO_SPACE, REFUSED, LOST = range(5)
WRITTEN = ("PAYLOAD_CRC", "CONTROL")


class Job(ctypes.Structure):
    """``struct cdu_job``."""

    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("beats", "row_beats", "channel_rows", "bank", "scales")),
        ("shifts", ctypes.c_uint8 * 64),
        ("crc", ctypes.c_uint8),
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
        options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC", "-I."]
        subprocess.run(["cc", *options, EXAMPLE, "platform.c", "-o", "example.so"], cwd=folder, check=True)
        self.c = ctypes.CDLL(str(folder / "example.so"))
        self.hooks = {"read_hook": READ(lambda place: self.values.get(place, 0)), "write_hook": WRITE(self._write)}
        for name, function in self.hooks.items():
            ctypes.c_void_p.in_dll(self.c, name).value = ctypes.cast(function, ctypes.c_void_p).value

    def _write(self, place, value):
        self.written.append((place, value))

    def start(self, crc):
        """Result, and what was written to two of the registers."""
        self.written.clear()
        result = self.c.cdu_start(ctypes.byref(Job(8, 1, 8, 0, 1, (ctypes.c_uint8 * 64)(), crc)))
        names = {address(name, Channel.COMPRESS): name for name in WRITTEN}
        return result, [(names[place], value) for place, value in self.written if place in names]


@pytest.fixture
def unit(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    return lambda **changed: Unit(tmp_path, CONFIGS["tiny"].override(**changed))


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
