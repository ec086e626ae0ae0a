"""Tests that need programs which are not installed everywhere are left out without them."""

import pytest
from cdu_tools.errors import MissingToolError
from cdu_verif.formal import solver
from cdu_verif.simulation import simulators


def _needs(reason, check, *arguments):
    try:
        check(*arguments)
    except MissingToolError:
        return pytest.mark.skip(reason=reason)
    return pytest.mark.skipif(False, reason=reason)


needs_verilator = _needs("Verilator is not installed", simulators.check, "verilator")
needs_icarus = _needs("Icarus Verilog is not installed", simulators.check, "icarus")
needs_provers = _needs("yices or ABC is not installed", solver.find_programs)
