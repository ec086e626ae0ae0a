"""Checksum of source text, to identify the code behind results that are stored and reused."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path


def sources_sha256(*names: str) -> str:
    """Return a checksum over the Python sources of modules, and of packages with everything in them, as installed.

    ModuleNotFoundError for a name that is not installed.
    """
    digest = hashlib.sha256()
    for name in names:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no module named {name!r}", name=name)
        files = [Path(spec.origin)]
        if spec.submodule_search_locations is not None:
            files = sorted(Path(spec.origin).parent.rglob("*.py"))
        for file in files:
            digest.update(f"{name} {file.relative_to(Path(spec.origin).parent).as_posix()}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()
