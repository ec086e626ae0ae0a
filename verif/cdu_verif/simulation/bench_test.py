"""The decorator of the benches' tests: makes, starts, names and reports the bench."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import cocotb
import pytest

from cdu_verif.simulation.bench import CLOCK_NS, Bench

#: Cycles after which a test fails: a hundred times those of the longest one, and minutes of any simulation.
LIMIT = 10_000_000
_Bench = TypeVar("_Bench", bound=Bench)
_Values = ParamSpec("_Values")


def bench_test(
    kind: Callable[[Any, str], _Bench], /, *, skip: bool = False, **parameters: Sequence[str] | Sequence[bool]
) -> Callable[[Callable[Concatenate[_Bench, _Values], Awaitable[None]]], Any]:
    """A cocotb test on a bench of a kind that is started before it and reported behind it.

    With ``parameters`` the test is run for every combination of their values, as ``NAME/PARAMETER=VALUE/...``. One that has not
    ended after :data:`LIMIT` cycles fails.
    """

    def decorate(test: Callable[Concatenate[_Bench, _Values], Awaitable[None]]) -> Any:
        async def run(dut: Any, *args: _Values.args, **values: _Values.kwargs) -> None:
            if skip:  # cocotb runs a skipped test that is asked for by name
                pytest.skip("the simulated unit does not have the subject of the test")
            bench = kind(dut, "/".join([test.__name__, *(f"{name}={value}" for name, value in values.items())]))
            await bench.start()
            await test(bench, *args, **values)
            bench.report()

        # cocotb names a test after its function; functools.wraps would also show it the other one's parameters.
        run.__name__ = run.__qualname__ = test.__name__
        run.__module__, run.__doc__ = test.__module__, test.__doc__
        return cocotb.test(skip=skip, timeout_time=LIMIT * CLOCK_NS, timeout_unit="ns")(cocotb.parametrize(**parameters)(run))

    return decorate
