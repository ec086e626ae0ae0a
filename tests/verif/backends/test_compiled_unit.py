"""The harness of compiled units on a small design whose behaviour is known: registers, packets, partial words, stalls."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Shape
from amaranth.lib.wiring import In, Out
from cdu.bus import axi_lite, axi_stream
from cdu_driver import BusError
from cdu_tools import cache
from cdu_tools.errors import MissingToolError
from cdu_tools.yosys import YosysError
from cdu_verif.backends.compiled import library
from cdu_verif.backends.compiled.unit import CompiledUnit, Packet
from tools_here import needs_verilator

SIZES = (8, 128)


pytestmark = needs_verilator


def _design(size):
    text = Path(__file__).with_name("loopback.v").read_text()
    members = axi_lite.members("s_axil") | axi_stream.members("s_axis", size, receives=True)
    members |= axi_stream.members("m_axis", size, receives=False) | {"clk": In(1), "rst": In(1), "irq": Out(1)}
    ports = [
        {"name": name, "width": Shape.cast(member.shape).width, "direction": "input" if member.flow is In else "output"}
        for name, member in members.items()
    ]
    return library.UnitDesign.of(text.replace("SIZE = 8", f"SIZE = {size}"), {"top": "loopback", "ports": ports})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(folder, monkeypatch):
    monkeypatch.setenv(cache.FOLDER_VARIABLE, str(folder))


@pytest.fixture(params=SIZES)
def unit(request):
    design = _design(request.param)
    return CompiledUnit(library.library(design), design.streams)


def _bytes(length, seed=0):
    return np.random.default_rng(seed).integers(0, 256, length, dtype=np.uint8)


def _run(unit, packets, patience=20_000):
    while patience > 0 and not all(packet.ended for packet in packets):
        patience -= unit.run(patience, until_packet=True)
    assert all(packet.ended for packet in packets)


@pytest.mark.parametrize("stalls", range(4))
def test_packets_of_every_length_pass(unit, stalls):
    unit.write(0, stalls)
    sent = [_bytes(length, length) for length in (*range(20), 127, 128, 129, 1000, 4096)]
    for data in sent:
        unit.queue("s_axis", Packet(data))
    received = [unit.queue("m_axis", Packet(np.zeros(len(data), np.uint8))) for data in sent]
    _run(unit, received)
    for data, packet in zip(sent, received, strict=True):
        assert packet.moved == len(data)
        assert np.array_equal(packet.array, data)
        assert not packet.overflowed
        assert not packet.holes
    size = unit.ports["s_axis"].size
    assert unit.read(8) == sum(max(1, -(-len(data) // size)) for data in sent)
    assert unit.read(12) == 0, "an offered word changed or went away"


def test_full_rate(unit):
    """A word per cycle when nobody stalls."""
    words = 1000
    data = _bytes(words * unit.ports["s_axis"].size)
    packet = unit.queue("m_axis", Packet(np.empty_like(data)))
    unit.queue("s_axis", Packet(data))
    begin = unit.cycle
    _run(unit, [packet])
    assert unit.cycle - begin <= words + 2


def test_any_dtype_is_moved_in_place(unit):
    data = np.arange(1000, dtype=np.float32)
    packet = unit.queue("m_axis", Packet(np.empty_like(data)))
    unit.queue("s_axis", Packet(data))
    _run(unit, [packet])
    assert np.array_equal(packet.array, data)


def test_more_than_there_is_room_for(unit):
    room = np.zeros(16, np.uint8)
    packet = unit.queue("m_axis", Packet(room[:10]))
    unit.queue("s_axis", Packet(_bytes(300)))
    _run(unit, [packet])
    assert packet.overflowed
    assert packet.moved == 10
    assert not room[10:].any()


def test_a_packet_without_tlast_goes_on_in_the_next(unit):
    first, second = _bytes(256, 1), _bytes(77, 2)
    unit.queue("s_axis", Packet(first, last=False))
    unit.queue("s_axis", Packet(second))
    packet = unit.queue("m_axis", Packet(np.zeros(333, np.uint8)))
    _run(unit, [packet])
    assert np.array_equal(packet.array, np.concatenate([first, second]))


def test_cancelled_packets_of_a_source(unit):
    """The packet that has begun goes on to its end, the next one never begins, the port works on."""
    size = unit.ports["s_axis"].size
    begun, waiting, after = _bytes(10 * size), _bytes(100, 1), _bytes(5, 2)
    unit.queue("s_axis", Packet(begun))
    never = unit.queue("s_axis", Packet(waiting))
    unit.run(5)  # nobody takes the output: one word is inside, the next one is offered
    unit.cancel("s_axis")
    unit.queue("s_axis", Packet(after))
    received = [unit.queue("m_axis", Packet(np.zeros(12 * size, np.uint8))) for _ in range(2)]
    _run(unit, received)
    for data, packet in zip((begun, after), received, strict=True):
        assert np.array_equal(packet.array[: packet.moved], data)
    assert never.moved == 0
    assert unit.read(12) == 0


@pytest.mark.parametrize("words", [0, 3])
def test_cancelled_packets_of_a_sink(unit, words):
    """The rest of a packet that has begun is thrown away; one that has not begun goes to who asks next."""
    size = unit.ports["s_axis"].size
    first, second = _bytes(10 * size), _bytes(5, 1)
    cancelled = unit.queue("m_axis", Packet(np.zeros(10 * size, np.uint8)))
    if words:
        unit.queue("s_axis", Packet(first))
        while cancelled.moved < words * size:
            unit.run(1)
    unit.cancel("m_axis")
    unit.queue("s_axis", Packet(second))
    packet = unit.queue("m_axis", Packet(np.zeros(5, np.uint8)))
    _run(unit, [packet])
    assert np.array_equal(packet.array, second)
    assert cancelled.moved == words * size


def test_registers_and_interrupt(unit):
    unit.write(4, 1)
    assert unit.interrupt
    assert unit.read(4) == 1
    assert unit.run(1000, until_interrupt=True) == 1
    unit.write(4, 0)
    assert unit.run(1000, until_interrupt=True) == 1000
    with pytest.raises(BusError, match="write of 0x1 to 0x8: refused"):
        unit.write(8, 1)
    with pytest.raises(BusError, match="read of 0x10: refused"):
        unit.read(16)
    unit.write(0, 3)
    unit.reset()
    assert unit.read(0) == 0


def test_streams_move_during_register_accesses(unit):
    data = _bytes(10)
    packet = unit.queue("m_axis", Packet(np.empty_like(data)))
    unit.queue("s_axis", Packet(data))
    for _ in range(8):
        unit.read(0)
    assert packet.ended


def test_instances_run_in_threads(unit):
    design = _design(unit.ports["s_axis"].size)
    units = [CompiledUnit(library.library(design), design.streams) for _ in range(3)]
    results = {}

    def work(number):
        packet = units[number].queue("m_axis", Packet(np.zeros(50_000, np.uint8)))
        units[number].queue("s_axis", Packet(_bytes(50_000, number)))
        _run(units[number], [packet])
        results[number] = packet.array

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(results[number], _bytes(50_000, number)) for number in range(3))


def test_the_library_is_made_once(capfd):
    library.library(_design(8))
    capfd.readouterr()
    first = library.library(_design(8)).stat()
    assert capfd.readouterr().err == ""
    assert library.library(_design(8)).stat().st_mtime_ns == first.st_mtime_ns


def test_what_matters_is_in_the_name(monkeypatch):
    def refuse(*arguments):
        raise KeyboardInterrupt

    design = _design(8)
    made = library.library(design)
    monkeypatch.setattr(library, "_compile", refuse)
    assert library.library(design) == made
    other = replace(design, verilog=design.verilog + "\n")
    with pytest.raises(KeyboardInterrupt):
        library.library(other)
    assert not [path for path in cache.folder().iterdir() if path.is_dir() and path.name.startswith(".")]
    monkeypatch.setattr(library, "_COMPILER_OPTIONS", (*library._COMPILER_OPTIONS, "-g"))
    with pytest.raises(KeyboardInterrupt):
        library.library(design)


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(library.shutil, "which", lambda name: None)
    with pytest.raises(MissingToolError, match="apt-get install"):
        library.library(_design(8))


def test_verilog_that_does_not_compile(folder):
    design = _design(8)
    broken = replace(design, verilog=design.verilog.replace("endmodule", ""))
    with pytest.raises(YosysError, match="syntax error"):
        library.library(broken)
