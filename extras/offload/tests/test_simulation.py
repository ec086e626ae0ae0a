"""The simulation against examples worked out by hand, analytic limits, and properties that must hold for every network."""

from dataclasses import replace

import pytest
from cdu_offload.network import NORM_INPUT, NORM_RESULT, OffloadActivation
from cdu_offload.offload import AT_CACHE, AT_DMA, CduOffload, CopyOffload
from cdu_offload.ratios import Ratios
from cdu_offload.resident import NoOffload, Software
from cdu_offload.simulation import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import INSTANT, cdus, chain, constant_ratio, machine, plain

THREE = chain((4, 4, 4), (5, 5, 5), (2, 2, 2))


def test_three_layers_by_hand():
    """Each activation takes 8 s over the link; the third stays.

    Forward: 0-4, 4-8, 8-12; activation 0 leaves 0-8, 1 leaves 8-16. Backward: layer 2 at 12-17; activation 1, which can come
    back when it has arrived, 16-24; layer 1 at 24-29 after 7 s; activation 0 24-32; layer 0 at 32-37 after 3 s.
    """
    outcome = simulate(THREE, machine(), plain(machine()))
    assert outcome.seconds == pytest.approx(37)
    assert outcome.forward_seconds == pytest.approx(12)
    assert outcome.compute_seconds == pytest.approx(27)
    assert outcome.stalls == pytest.approx({"link": 10, "cdu": 0})
    assert outcome.bytes_moved == {"compress": 16, "decompress": 16}


def test_memory_makes_forward_wait():
    """With 2 s per layer, layer 2 is ready at 4 s and waits for activation 0 until 8 s; layer 3 until activation 1 has gone."""
    network = chain((2, 2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2))
    outcome = simulate(network, machine(), plain(machine()))
    assert outcome.forward_seconds == pytest.approx(18)  # 0-2, 2-4, 8-10, 16-18


def test_two_layers_ahead_wait_less():
    network = chain((2, 2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2))
    assert simulate(network, machine(), plain(machine()), ahead=2).forward_seconds == pytest.approx(10)  # layer 3 from 8 s


def test_results_that_nobody_reads_leave_when_they_are_made():
    network = chain((4, 4), (4, 4), (2, 2))
    first, second = network.forward
    made = first.__class__(first.name, first.flops, 0, makes=(0,))
    network = network.__class__(**vars(network) | {"forward": (made, second)})
    # Leaves 4-12, comes back 12-20 while layer 1 computes 4-8 and, backward, 8-12.
    outcome = simulate(network, machine(), plain(machine()))
    assert outcome.seconds == pytest.approx(24)


def test_transfers_and_work_share_the_memory():
    """80 bytes at 10 per second; the first 4 s a transfer takes 2 per second: 4 s x 8 + 4.8 s x 10."""
    network = chain((0, 0), (0, 0), (2, 2), nbytes=80)
    opened = tuple(work.__class__(work.name, 1, work.nbytes, work.releases) for work in network.forward)
    network = network.__class__(**vars(network) | {"forward": opened})
    platform = machine(flops=INSTANT, memory=10.0, link=2.0)
    outcome = simulate(network, platform, plain(platform))
    assert outcome.forward_seconds == pytest.approx(8.8 + 8)


def test_no_offload_takes_the_roofline():
    assert simulate(THREE, machine(), NoOffload()).seconds == pytest.approx(machine().step_seconds(THREE)) == pytest.approx(27)


def test_an_infinite_link_leaves_only_computing():
    platform = machine(link=INSTANT)
    outcome = simulate(THREE, platform, plain(platform))
    assert outcome.seconds == pytest.approx(27)
    assert sum(outcome.stalls.values()) == pytest.approx(0, abs=1e-12)


def test_without_computing_the_bytes_take_their_time_out_and_back():
    platform = machine(flops=INSTANT, link=4.0)
    assert simulate(THREE, platform, plain(platform)).seconds == pytest.approx(2 * 16 / 4.0)


@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_compression_divides_what_the_link_takes(ratio):
    platform = machine(flops=INSTANT, link=4.0)
    network = chain((1, 1, 1), (1, 1, 1), (64, 64, 64))
    method = CduOffload(platform, cdus(4, INSTANT), AT_DMA, {}, constant_ratio(ratio))
    outcome = simulate(network, platform, method)
    assert outcome.seconds == pytest.approx(2 * 512 / 4.0 / ratio)
    assert outcome.bytes_moved == {"compress": 512 // ratio, "decompress": 512 // ratio}


@pytest.mark.parametrize("count", [1, 2, 4, 8])
@pytest.mark.parametrize(("clock", "port"), [(1.0, INSTANT), (INSTANT, 32.0)])
def test_cdus_saturate_at_32_bytes_per_cycle_each(count, clock, port):
    """The CDUs' clock or the crossbar's clock (a port of 32 bytes at 1 Hz) is the limit."""
    platform = machine(flops=INSTANT, link=INSTANT, port=port)
    network = chain((1, 1, 1), (1, 1, 1), (4096, 4096, 4096))
    method = CduOffload(platform, cdus(count, clock), AT_DMA, {}, constant_ratio(8))
    outcome = simulate(network, platform, method)
    assert outcome.seconds == pytest.approx(2 * (2 * 4 * 4096) / (32 * count))
    assert outcome.stalls["link"] == 0
    assert outcome.stalls["cdu"] == pytest.approx(outcome.seconds)


def test_at_the_cache_one_port_carries_what_is_packed():
    platform = machine(flops=INSTANT, link=INSTANT, port=32.0)
    network = chain((1, 1, 1), (1, 1, 1), (4096, 4096, 4096))
    method = CduOffload(platform, cdus(24, INSTANT), AT_CACHE, {}, constant_ratio(8))
    assert simulate(network, platform, method).seconds == pytest.approx(2 * (2 * 4 * 4096) / 8 / 32)


def test_packets_are_whole():
    platform = machine(packet=128)
    method = CduOffload(platform, cdus(1, INSTANT), AT_DMA, {}, constant_ratio(3))
    network = chain((1, 1), (1, 1), (100, 100))
    assert simulate(network, platform, method).bytes_moved["compress"] == 256  # 400 / 3 in packets of 128


def test_filling_a_unit_counts_once_per_activation():
    platform = machine(flops=INSTANT, link=INSTANT)
    network = chain((1, 1, 1), (1, 1, 1), (64, 64, 64))
    method = CduOffload(platform, cdus(1, 1.0, start=10), AT_DMA, {}, constant_ratio(8))
    assert simulate(network, platform, method).seconds == pytest.approx(2 * 2 * (10 + 64 / 8))


@pytest.mark.parametrize(("both_ways", "compress"), [(True, 9), (False, 17)])
@pytest.mark.parametrize(("kind", "result"), [("sparse", 16), ("signs", 32)])
def test_one_copy_serves_a_normalisation_and_its_relu(kind, result, both_ways, compress):
    """Ratio 8 of the input, half of the copy, and of the result's half and signs; a unit of 8 values per cycle and 1 Hz.

    The input does not move. The result's 64 values take 8 s to encode, and its signs 1 s, both ways. Before they leave, 8 s
    to be decoded, which a unit in full duplex does meanwhile.
    """
    shape = (1, 1, 8, 8)
    ratios = Ratios({("dense", "conv"): (8.0, 1.0), (kind, "relu"): (float(result), 1.0)})
    unit = replace(cdus(1, 1.0), both_ways=both_ways)
    method = CopyOffload(machine(link=INSTANT), unit, AT_DMA, {}, ratios)
    assert method.transfer(OffloadActivation("conv", "dense", shape, NORM_INPUT), "compress") is None
    activation = OffloadActivation("relu", kind, shape, NORM_RESULT)
    sent, fetched = (method.transfer(activation, direction) for direction in ("compress", "decompress"))
    assert sent.link_bytes == fetched.link_bytes == 256 / 8 + 256 / result
    assert (sent.seconds, fetched.seconds) == (compress, 9)
    # Without its normalisation a ReLU has a copy of its own, with signs, or nothing but signs.
    alone = method.transfer(replace(activation, pair=""), "compress")
    assert (alone.link_bytes, alone.seconds) == (256 / result, compress if kind == "sparse" else 8)
    dense = method.transfer(OffloadActivation("conv", "dense", shape), "compress")
    assert (dense.link_bytes, dense.seconds) == (32, 8)


def test_overhead_of_software_adds_up():
    outcome = simulate(THREE, machine(), Software(0.5))
    assert outcome.overhead_seconds == pytest.approx(0.5 * 24)
    assert outcome.seconds == pytest.approx(27 + 12)


def test_published_slowdown_comes_out():
    method = Software.of_slowdown(0.25, THREE, machine())
    assert machine().step_seconds(THREE) / simulate(THREE, machine(), method).seconds == pytest.approx(0.75)


@pytest.mark.parametrize(("compute", "link"), [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
def test_slowest_stage_sets_the_pace(compute, link):
    """Against blocks that pass through both stages one by one, with no room between them but for the next block."""
    blocks = 1000
    computed = sent = 0.0
    for _ in range(blocks):
        computed = max(computed + compute, sent)  # waits for the room that the block before leaves
        sent = max(computed, sent) + link
    platform = machine(flops=INSTANT, link=64 / link)
    network = chain((1, 1), (1, 1), (64 * blocks, 64))
    method = CduOffload(platform, cdus(1, 1.0, values_per_cycle=64 / compute), AT_DMA, {}, constant_ratio(4))
    out = simulate(network, platform, method).transfer_seconds["compress"]
    assert out == pytest.approx(sent, abs=compute + link)


CHAINS = st.integers(2, 7).flatmap(
    lambda n: st.builds(
        chain,
        *(st.lists(st.integers(1, 50), min_size=n, max_size=n).map(tuple) for _ in range(2)),
        st.lists(st.integers(1, 400), min_size=n, max_size=n).map(tuple),
        nbytes=st.integers(0, 500),
    )
)
RATES = st.floats(0.5, 100)


@settings(max_examples=60, deadline=None)
@given(CHAINS, RATES, RATES, st.integers(1, 3))
def test_a_faster_link_is_never_slower(network, link, more, ahead):
    slow, fast = machine(link=link), machine(link=link + more)
    slower = simulate(network, slow, plain(slow), ahead).seconds
    assert simulate(network, fast, plain(fast), ahead).seconds <= slower * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(CHAINS, RATES, st.integers(1, 8), st.floats(1, 32))
def test_more_cdus_and_better_ratios_are_never_slower(network, clock, count, ratio):
    platform = machine(link=20.0)

    def seconds(number, quotient):
        method = CduOffload(platform, cdus(number, clock), AT_DMA, {}, constant_ratio(quotient))
        return simulate(network, platform, method).seconds

    assert seconds(count + 1, ratio) <= seconds(count, ratio) * (1 + 1e-9)
    assert seconds(count, 2 * ratio) <= seconds(count, ratio) * (1 + 1e-9)


@settings(max_examples=80, deadline=None)
@given(CHAINS, RATES, st.floats(2, 1000), st.integers(1, 3))
def test_accounts_balance(network, link, memory, ahead):
    """A step is the sum of its parts, at least the computation and either direction of the link; bytes sent return."""
    platform = machine(link=link, memory=memory)
    outcome = simulate(network, platform, plain(platform), ahead)
    assert outcome.seconds == pytest.approx(outcome.compute_seconds + outcome.overhead_seconds + sum(outcome.stalls.values()))
    moved = sum(activation.nbytes for activation in network.activations[:-1])
    assert outcome.bytes_moved == {"compress": moved, "decompress": moved}
    least = max(platform.step_seconds(network), moved / link)
    assert outcome.seconds >= least * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(CHAINS, RATES, st.integers(1, 5))
def test_room_for_more_layers_is_never_slower(network, link, ahead):
    platform = machine(link=link)
    less, more = (simulate(network, platform, plain(platform), layers).seconds for layers in (ahead, ahead + 1))
    assert more <= less * (1 + 1e-9)
