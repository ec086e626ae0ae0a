"""Adder graphs and ranged arithmetic, against plain integers."""

from random import Random

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.sim import Simulator
from cdu.parts.widths import Ranged
from cdu.transform.constant_multiplier import adder_graph, products
from cdu_spec.dct import constant


@pytest.mark.parametrize("const_bits", range(8, 14))
def test_adder_graphs_make_the_constants_of_the_transform(const_bits):
    wanted = {constant(k, const_bits) for k in (1, 2, 3, 5, 6, 7)}
    odd = frozenset(value // (value & -value) for value in wanted)
    _check_graph(odd)


def test_adder_graphs_make_random_constants():
    rng = Random(1)
    for _ in range(25):
        _check_graph(frozenset(rng.randrange(1, 1 << 10, 2) for _ in range(rng.randint(1, 3))))


def _check_graph(constants):
    made = {1}
    for step in adder_graph(constants):
        assert step.left in made
        assert step.right in made
        assert step.result == (step.left << step.left_shift) + step.sign * (step.right << step.right_shift)
        made.add(step.result)
    assert constants <= made


@pytest.mark.parametrize("constants", [{0}, {2}, {-3}])
def test_adder_graphs_take_odd_positive_constants_only(constants):
    with pytest.raises(ValueError, match="odd positive"):
        adder_graph(frozenset(constants))


def _settle(module, inputs, outputs, stimulus):
    """Values of combinational outputs for each tuple of inputs."""
    found = []

    async def drive(context):
        for values in stimulus:
            for signal, value in zip(inputs, values, strict=True):
                context.set(signal, value)
            await context.delay(1e-9)
            found.append([context.get(signal) for signal in outputs])

    simulator = Simulator(module)
    simulator.add_testbench(drive)
    simulator.run()
    return found


def test_products_are_exact_at_both_ends():
    constants = [constant(k, 12) for k in (1, 2, 3, 5, 6, 7)]
    m, value = Module(), Signal(signed(9))
    made = products(m, Ranged.of(value), constants, "p")
    outputs = []
    for number in constants:
        outputs.append(Signal(signed(32), name=f"o{number}"))
        m.d.comb += outputs[-1].eq(made[number].value)
    stimulus = [(number,) for number in range(-256, 256)]
    assert _settle(m, [value], outputs, stimulus) == [[x * number for number in constants] for (x,) in stimulus]


def test_ranges_contain_every_result():
    m, a, b = Module(), Signal(signed(4)), Signal(3)
    x, y = Ranged.of(a), Ranged.of(b)
    results = {
        "sum": (x + y, lambda p, q: p + q),
        "difference": (x - y, lambda p, q: p - q),
        "negation": (-x, lambda p, q: -p),
        "shift": (x << 3, lambda p, q: p << 3),
        "offset": (x + 5, lambda p, q: p + 5),
        "rounded": ((x - y).round_half_up(2), lambda p, q: (p - q + 2) >> 2),
    }
    outputs = [ranged.wire(m, name).value for name, (ranged, _) in results.items()]
    stimulus = [(p, q) for p in range(-8, 8) for q in range(8)]
    for (p, q), values in zip(stimulus, _settle(m, [a, b], outputs, stimulus), strict=True):
        for value, (ranged, expected) in zip(values, results.values(), strict=True):
            assert value == expected(p, q)
            assert ranged.low <= value <= ranged.high


@pytest.mark.parametrize("bits", [3, 5, 8, 9])
def test_saturation(bits):
    m, a, out = Module(), Signal(signed(8)), Signal(signed(12))
    m.d.comb += out.eq(Ranged.of(a).saturated(bits))
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    found = _settle(m, [a], [out], [(value,) for value in range(-128, 128)])
    assert [value for (value,) in found] == [min(max(value, least), most) for value in range(-128, 128)]
