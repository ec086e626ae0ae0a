"""Opening a ring of the engine in any of its states, against registers that are written down here."""

import pytest
from cdu_driver import RecoveryError, open_ring, run, stop_ring
from cdu_spec.dma import RING_REGISTERS, dma_address, dma_register
from cdu_spec.register_types import Channel

CHANNEL = Channel.COMPRESS
RING = 0x12_3400_0080


class Engine:
    """Registers of a direction; the ring comes to rest after some reads of STATUS, or never."""

    def __init__(self, reads_until_rest, **values):
        self.left, self.writes = reads_until_rest, []
        self.values = {dma_address(name, CHANNEL): value for name, value in values.items()}

    def value(self, name):
        return self.values.get(dma_address(name, CHANNEL), 0)

    async def read(self, address):
        if address == dma_address("STATUS", CHANNEL):
            if not self.value("CONTROL") and self.left:
                self.left -= 1
            return int(self.left > 0)
        return self.values.get(address, 0)

    async def write(self, address, value):
        names = {dma_address(name, CHANNEL): name for name in (*RING_REGISTERS, "TAIL", "CONTROL", "ERRORS")}
        name = names.get(address)
        self.writes.append(name)
        if name in RING_REGISTERS:
            running = self.value("CONTROL") or self.left
            assert not running, f"{name} was written while the ring ran"
        sticky = address in (dma_address("ERRORS", CHANNEL), dma_address("INTERRUPT_STATUS", CHANNEL))
        self.values[address] = self.values.get(address, 0) & ~value if sticky else value


@pytest.mark.parametrize(
    ("reads", "values"),
    [
        (0, {}),
        (0, {"CONTROL": 1, "TAIL": 9}),
        (5, {"CONTROL": 1, "TAIL": 9, "ERRORS": 0x1F, "INTERRUPT_STATUS": 3}),
        (3, {"CONTROL": 0, "TAIL": 0xFFFFFFFF}),
    ],
    ids=["never started", "at rest", "running", "stopped half-way"],
)
def test_an_engine_in_any_state_is_opened(reads, values):
    engine = Engine(reads, **values)
    run(open_ring(engine, CHANNEL, RING, 3))
    low = dma_register("RING_LOW").field("address")
    assert engine.value("RING_LOW") | engine.value("RING_HIGH") << 32 == RING
    assert not RING & ~(low.mask | ~0xFFFFFFFF)
    assert [engine.value(name) for name in ("RING_SIZE", "TAIL", "ERRORS", "INTERRUPT_STATUS", "CONTROL")] == [3, 0, 0, 0, 1]
    assert engine.writes[0] == engine.writes[-1] == "CONTROL"


def test_an_engine_that_does_not_stop_is_told_in_one_sentence():
    engine = Engine(1000, CONTROL=1)
    with pytest.raises(
        RecoveryError, match=r"channel compress does not stop: STATUS.busy is still 1 after 20 reads; reset the unit"
    ):
        run(open_ring(engine, CHANNEL, RING, 3, patience=20))
    assert engine.writes == ["CONTROL"]
    with pytest.raises(RecoveryError):
        run(stop_ring(engine, CHANNEL, patience=20))


@pytest.mark.parametrize(
    ("address", "log2"),
    [(RING + 64, 3), (1 << 40, 0), ((1 << 40) - 128, 1), (-128, 0), (RING, 17), (RING, -1)],
)
def test_a_ring_that_cannot_be_is_refused_before_anything_is_written(address, log2):
    engine = Engine(0)
    with pytest.raises(ValueError, match="is not allowed: use"):
        run(open_ring(engine, CHANNEL, address, log2))
    assert not engine.writes


def test_the_last_place_may_end_at_the_last_address():
    run(open_ring(engine := Engine(0), CHANNEL, (1 << 40) - 256, 1))
    assert engine.value("RING_HIGH") == 0xFF
