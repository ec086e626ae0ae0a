"""The three numbers that drivers and files depend on (docs/developer/versions.md)."""

from __future__ import annotations

import importlib.metadata

from cdu_spec import bitstream, registers


def versions() -> dict[str, str]:
    """Versions of the installed package, of the register map of its units, and of the streams that it writes."""
    return {
        "cdu": importlib.metadata.version("cdu"),
        "registers": f"{registers.MAJOR}.{registers.MINOR}",
        "bitstream": str(bitstream.VERSION),
    }
