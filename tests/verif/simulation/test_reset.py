"""Benches reset a top by the port that it has."""

from types import SimpleNamespace

import pytest
from cdu_verif.simulation.reset import Reset


def top(**signals):
    return SimpleNamespace(**{name: SimpleNamespace(value=value) for name, value in signals.items()})


@pytest.mark.parametrize(("signals", "port", "active"), [({"rst": 0}, "rst", 1), ({"aresetn": 1}, "aresetn", 0)])
def test_the_port_is_driven_to_its_active_level(signals, port, active):
    dut = top(**signals)
    reset = Reset(dut)
    reset.drive(True)
    assert getattr(dut, port).value == active
    assert reset.is_active()
    reset.drive(False)
    assert getattr(dut, port).value == 1 - active
    assert not reset.is_active()


def test_a_signal_inside_a_unit_is_not_taken_for_its_port():
    """A unit whose reset is active low has ``rst`` inside, and simulators show it beside the ports."""
    dut = top(rst=1, aresetn=0)
    reset = Reset(dut)
    reset.drive(False)
    assert (dut.aresetn.value, dut.rst.value) == (1, 1)
    assert reset.axi() == {"reset": dut.aresetn, "reset_active_level": False}
