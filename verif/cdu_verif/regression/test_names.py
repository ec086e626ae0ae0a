"""Names of the tests of a simulation, found without one: the benches are imported as a simulator does it."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from cdu_spec.config import CduConfig

from cdu_verif.simulation.bench import BLOCK, MANIFEST


def names(block: str, config: CduConfig, modules: Sequence[str], *, skipped: bool = True) -> set[str]:
    """Return the names of the tests in the modules of a block, in the form that reports have.

    Without ``skipped`` those that such a block skips are left out.
    Benches read their block and its parameters when they are imported, also in modules that they share.
    """
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "manifest.json"
        manifest.write_text(json.dumps({"config": config.to_dict()}), encoding="utf-8")
        settings = {MANIFEST: str(manifest), BLOCK: block}
        with mock.patch.dict(os.environ, settings), _without_benches(modules):
            found = [vars(importlib.import_module(module)) for module in modules]
    return {one.name for module in found for test in module.values() for one in _generated(test) if skipped or not one.skip}


@contextmanager
def _without_benches(modules: Sequence[str]) -> Iterator[None]:
    """Forget the given modules and those of benches within the ``with`` block, and afterwards what is imported there."""

    def forget() -> dict[str, Any]:
        benches = [name for name in sys.modules if name in modules or name.startswith("cdu_verif.benches.")]
        return {name: sys.modules.pop(name) for name in benches}

    before = forget()
    try:
        yield
    finally:
        forget()
        sys.modules.update(before)
        for name, module in before.items():
            package, _, last = name.rpartition(".")
            if package in sys.modules:
                setattr(sys.modules[package], last, module)


def _generated(test: Any) -> Sequence[Any]:
    """Return the tests that cocotb makes of an object in a module; empty if the object is not a test."""
    return list(test.generate_tests()) if hasattr(test, "generate_tests") else ()
