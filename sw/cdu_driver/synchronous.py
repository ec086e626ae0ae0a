"""Run the driver without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of a coroutine whose device does all waiting inside its methods (it steps a simulation, or polls).

    Raises RuntimeError if the coroutine waits for anything else: then it needs the event loop of its device.
    """
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: _Result = stop.value
        return result
    coroutine.close()
    raise RuntimeError("this device waits for an event loop: await the coroutine there instead of calling run()")
