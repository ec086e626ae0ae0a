"""Jobs that cannot be, and running coroutines; all else is tested on compiled units (tests/verif/backends/test_driver.py)."""

import asyncio

import pytest
from cdu_driver import Driver, Job, WrongUnitError, errors, run
from cdu_driver.device import Device
from cdu_spec.channel_block import ERROR_FLAGS
from cdu_spec.modes import Mode
from cdu_spec.registers import address, register
from cdu_tools.errors import UserError

GOOD = {
    "mode": Mode.JPEG_ACT,
    "beats": 16,
    "row_beats": 2,
    "channel_rows": 4,
    "data": b"1",
    "scales": bytes(8),
    "shifts": (3,) * 64,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beats": 0}, "beats = 0 is not allowed: use 1 to"),
        ({"row_beats": 1 << 26}, "row_beats = 67108864 is not allowed: use 1 to 67108863"),
        ({"channel_rows": -1}, "channel_rows = -1 is not allowed"),
        ({"beats": 24}, "beats = 24 is not allowed in mode jpeg-act: use a multiple of 16"),
        ({"mode": Mode.SFPR_ZVC, "shifts": (), "beats": 17}, "use a multiple of 8"),
        ({"shifts": ()}, "takes 64 shifts from 0 to 7"),
        ({"shifts": (8,) * 64}, "takes 64 shifts from 0 to 7"),
        ({"mode": Mode.SFPR}, "mode sfpr takes no shifts"),
        ({"scales": bytes(4)}, "4 bytes of scales do not fit this job: it has 2 of 4 bytes"),
        ({"mode": Mode.BRC, "shifts": ()}, "it has 0 of 4 bytes"),
    ],
)
def test_jobs_that_cannot_be(changes, message):
    assert Job(**GOOD)
    with pytest.raises(UserError, match=message):
        Job(**GOOD | changes)


def test_every_error_has_a_remedy():
    assert list(errors.REMEDIES) == [name for name, _ in ERROR_FLAGS]


class Elsewhere(Device):
    """Something at the address of a unit that is none, or another version."""

    def __init__(self, values):
        self.values = values

    async def read(self, address):
        return self.values[address]

    async def write(self, address, value):
        raise AssertionError("a driver must not write to what it does not know")

    async def send(self, port, packet):
        raise AssertionError

    async def expect(self, port, size):
        raise AssertionError

    async def receive(self, port):
        raise AssertionError

    async def cancel(self, port):
        raise AssertionError

    async def wait_interrupt(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({address("ID"): 0xFFFFFFFF}, "there is no unit: its ID reads 0xffffffff"),
        ({address("ID"): register("ID").reset, address("VERSION"): 0x20000}, "version 2: this driver knows version 1"),
    ],
)
def test_what_is_no_unit(values, message):
    with pytest.raises(WrongUnitError, match=message):
        run(Driver(Elsewhere(values)).open())


def test_a_job_with_a_crc_does_not_reach_a_unit_without():
    """A queue that was not opened knows of a unit with nothing in it."""
    queue = Driver(Elsewhere({})).compress
    with pytest.raises(UserError, match="checks no CRC of payloads: use a job without, or build it with payload_crc = 1"):
        run(queue.submit(Job(**GOOD | {"data": b"", "crc": True})))


def test_run_gives_results_and_errors():
    async def three():
        return 3

    async def fails():
        raise UserError("no")

    assert run(three()) == 3
    with pytest.raises(UserError, match="no"):
        run(fails())
    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run(asyncio.sleep(0))
