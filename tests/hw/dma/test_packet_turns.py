"""Clients of one reader or writer of memory: each packet is whole, its words belong to its own client, clients take turns."""

from collections import deque
from random import Random

import pytest
from amaranth.sim import Simulator
from cdu.dma.packet_turns import PacketTurns
from cdu.dma.read_master import reader_streams
from cdu.dma.write_master import writer_streams

SIZE, PACKETS = 8, 30


def simulated(turns, bench):
    simulator = Simulator(turns)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()


class Client:
    """Number of packets that a client has asked for, and the words and results that it received."""

    def __init__(self):
        self.asked = 0
        self.words, self.results = [], []


@pytest.mark.parametrize("clients", [2, 3])
@pytest.mark.parametrize("willing", [1.0, 0.4])
def test_readers_clients_get_their_own_words(clients, willing):
    rng = Random(f"{clients} {willing}")
    turns = PacketTurns(reader_streams(SIZE), clients)
    mine = [Client() for _ in range(clients)]
    served = []

    async def bench(ctx):
        answers, results = deque(), deque()
        for _ in range(6000):
            for number, client in enumerate(mine):
                ctx.set(turns.segments[number].valid, client.asked < PACKETS)
                ctx.set(turns.segments[number].payload.address, number << 8 | client.asked)
                ctx.set(turns.o[number].ready, rng.random() < willing)
                ctx.set(turns.result[number].ready, rng.random() < willing)
            ctx.set(turns.shared_segments.ready, not answers and not results and rng.random() < willing)
            ctx.set(turns.shared_o.valid, bool(answers))
            ctx.set(turns.shared_o.payload.data, answers[0] if answers else 0xDEAD)
            ctx.set(turns.shared_result.valid, bool(results) and not answers)
            ctx.set(turns.shared_result.payload, results[0] & 1 if results else 0)
            await ctx.delay(1e-9)
            if ctx.get(turns.shared_segments.valid & turns.shared_segments.ready):
                address = ctx.get(turns.shared_segments.payload.address)
                served.append(address)
                answers.extend([address] * (1 + address % 3))
                results.append(address)
            taken = sum(ctx.get(turns.o[number].valid & turns.o[number].ready) for number in range(clients))
            assert taken == ctx.get(turns.shared_o.valid & turns.shared_o.ready)
            for number, client in enumerate(mine):
                if ctx.get(turns.segments[number].valid & turns.segments[number].ready):
                    client.asked += 1
                if ctx.get(turns.o[number].valid & turns.o[number].ready):
                    client.words.append(ctx.get(turns.o[number].payload.data))
                if ctx.get(turns.result[number].valid & turns.result[number].ready):
                    client.results.append(ctx.get(turns.result[number].payload))
            if taken:
                answers.popleft()
            if ctx.get(turns.shared_result.valid & turns.shared_result.ready):
                results.popleft()
            await ctx.tick()
            if all(len(client.results) == PACKETS for client in mine):
                return
        raise AssertionError("a client was not served")

    simulated(turns, bench)
    for number, client in enumerate(mine):
        addresses = [number << 8 | packet for packet in range(PACKETS)]
        assert client.words == [address for address in addresses for _ in range(1 + address % 3)]
        assert client.results == [address & 1 for address in addresses]
    # All ask all the time: no client is served twice before another
    order = [address >> 8 for address in served]
    assert all(len(set(order[place : place + clients])) == clients for place in range(len(order) - clients))


def test_a_writers_words_do_not_pass_before_its_segment():
    turns = PacketTurns(writer_streams(SIZE), 2)

    async def bench(ctx):
        ctx.set(turns.shared_segments.ready, 1)
        ctx.set(turns.shared_i.ready, 1)
        for number in range(2):
            ctx.set(turns.i[number].valid, 1)
            ctx.set(turns.i[number].payload.data, 10 + number)
        for _ in range(3):
            await ctx.delay(1e-9)
            assert not ctx.get(turns.shared_i.valid), "nobody has asked"
            await ctx.tick()
        ctx.set(turns.segments[1].valid, 1)
        await ctx.tick()
        await ctx.delay(1e-9)
        assert ctx.get(turns.shared_segments.valid)
        assert ctx.get(turns.shared_i.payload.data) == 11
        assert (ctx.get(turns.i[0].ready), ctx.get(turns.i[1].ready)) == (0, 1)
        ctx.set(turns.segments[1].valid, 0)
        ctx.set(turns.segments[0].valid, 1)
        ctx.set(turns.result[1].ready, 1)
        await ctx.tick().repeat(3)
        await ctx.delay(1e-9)
        assert not ctx.get(turns.segments[0].ready), "the first packet has no result yet"
        ctx.set(turns.shared_result.valid, 1)
        ctx.set(turns.shared_result.payload.surplus, 1)
        await ctx.delay(1e-9)
        assert (ctx.get(turns.result[0].valid), ctx.get(turns.result[1].valid)) == (0, 1)
        assert ctx.get(turns.result[1].payload.surplus) == 1
        await ctx.tick()
        ctx.set(turns.shared_result.valid, 0)
        await ctx.tick()
        await ctx.delay(1e-9)
        assert ctx.get(turns.shared_i.payload.data) == 10

    simulated(turns, bench)
