"""Effects of the parameters for a shorter clock period: registers inside products, and latency."""

from random import Random

import pytest
from amaranth.hdl import Const, Fragment, Module, Signal, signed
from amaranth.lib import stream
from amaranth.sim import Simulator
from cdu.parts.multiplier import beside_product, multiplied
from cdu.parts.register_slice import sliced
from cdu.parts.streams import registered
from cdu.parts.widths import Ranged
from cdu.transform.constant_multiplier import Cut, products
from cdu.transform.dct import Dct
from cdu.transform.idct import Idct
from cdu.transform.two_way_dct import TwoWayDct
from cdu.values.inverse_sfpr import InverseSfpr
from cdu.values.sfpr import Sfpr
from cdu_spec import latencies
from cdu_spec.config import CduConfig
from cdu_spec.dct import constant


def _clocked(module, inputs, outputs, stimulus, latency):
    """Return the outputs ``latency`` cycles after each tuple of inputs, one of which comes per cycle."""
    found = []

    async def bench(context):
        for number in range(len(stimulus) + latency):
            for signal, value in zip(inputs, stimulus[min(number, len(stimulus) - 1)], strict=True):
                context.set(signal, value)
            if number >= latency:
                found.append(tuple(context.get(signal) for signal in outputs))
            await context.tick()

    simulator = Simulator(module)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return found


@pytest.mark.parametrize("const_bits", [8, 12, 13])
@pytest.mark.parametrize(("before", "behind"), [(0, 3), (2, 1), (0, 9), (9, 0)])
def test_products_with_a_cut_come_together_a_cycle_later(const_bits, before, behind):
    constants = [constant(k, const_bits) for k in (1, 3, 5, 7)] + [1, 2]
    m, x, rng = Module(), Signal(signed(10)), Random(const_bits)
    made = products(m, Ranged.of(x), constants, "x", Cut(Const(1), before, behind))
    outputs = [Signal(signed(40), name=f"product{number}") for number in range(len(constants))]
    m.d.comb += [output.eq(made[factor].value) for output, factor in zip(outputs, constants, strict=True)]
    values = [-512, 511, 0, -1, *(rng.randrange(-512, 512) for _ in range(50))]
    found = _clocked(m, [x], outputs, [(value,) for value in values], 1)
    assert found == [tuple(value * factor for factor in constants) for value in values]


@pytest.mark.parametrize("bits", [(24, 8), (11, 11), (7, 24), (3, 2), (24, 24)])
@pytest.mark.parametrize("stages", [0, 1])
def test_a_product_and_what_goes_beside_it_are_in_step(bits, stages):
    left, right, product = Signal(bits[0]), Signal(bits[1]), Signal(sum(bits))
    m, beside, rng = Module(), Signal(bits[0]), Random(stages)

    def stage(value, name):
        return registered(m, Const(1), value, name)

    m.d.comb += [
        product.eq(multiplied(m, stage, left, right, stages)),
        beside.eq(beside_product(stage, left, "left", stages)),
    ]
    greatest = tuple((1 << size) - 1 for size in bits)
    pairs = [(0, 0), greatest, *(tuple(rng.randint(0, most) for most in greatest) for _ in range(100))]
    found = _clocked(m, [left, right], [product, beside], pairs, 1 + stages)
    assert found == [(one * other, one) for one, other in pairs]


@pytest.mark.parametrize(
    ("block", "setting", "latency"),
    [
        (Sfpr, {}, 3),
        (Sfpr, {"multiplier_stages": 1}, 4),
        (Sfpr, {"modes": ("sfpr", "blpa")}, 4),
        (InverseSfpr, {}, 3),
        (InverseSfpr, {"multiplier_stages": 1}, 4),
        (InverseSfpr, {"value_format": "bf16"}, 4),
        (Dct, {}, 11),
        (Dct, {"dct_stages": 1}, 13),
        (Idct, {}, 14),
        (Idct, {"dct_stages": 1}, 16),
        (TwoWayDct, {"duplex": "half"}, 13),
        (TwoWayDct, {"duplex": "half", "dct_stages": 1}, 15),
    ],
)
def test_latency(block, setting, latency):
    config = CduConfig(**setting)
    known = {Sfpr: latencies.sfpr, InverseSfpr: latencies.inverse_sfpr, Idct: latencies.idct}.get(block, latencies.dct)
    assert known(config) == latency
    dut, seen = block(config), []

    async def bench(context):
        context.set(dut.i.valid, 1)
        context.set(dut.o.ready, 1)
        for _ in range(24):
            seen.append(context.get(dut.o.valid))
            await context.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [0] * latency + [1] * (24 - latency)  # and no bubble


def test_without_register_slices_a_stream_stays_itself():
    source = stream.Signature(8).create()
    m = Module()
    assert sliced(m, CduConfig(), "unused", source) is source
    Fragment.get(m, None)


def test_a_register_slice_cuts_ready_and_passes_a_payload_per_cycle():
    m, source, rng = Module(), stream.Signature(8).create(), Random(1)
    sink = sliced(m, CduConfig(register_slices=1), "register_slice", source)
    sent, received, stalls = [], [], 0

    async def bench(context):
        nonlocal stalls
        context.set(source.valid, 1)
        for _ in range(200):
            context.set(source.payload, len(sent))
            takes = rng.random() < 0.8
            offered = set()
            for ready in (not takes, takes):
                context.set(sink.ready, ready)
                offered.add(context.get(source.ready))
            assert len(offered) == 1, "ready of the sink reaches that of the source"
            if offered.pop():
                sent.append(len(sent))
            if takes and context.get(sink.valid):
                received.append(context.get(sink.payload))
            stalls += not takes
            await context.tick()

    simulator = Simulator(m)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert received == sent[: len(received)]
    assert len(received) == 200 - stalls - 1  # all cycles that were not refused, but for the latency
