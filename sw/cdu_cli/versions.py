"""The three numbers that drivers and files depend on (docs/developer/versions.md)."""

from __future__ import annotations

from cdu_spec import bitstream, registers
from cdu_tools.distribution import version


def versions() -> dict[str, str]:
    """Versions of the installed package, of the register map of its units, and of the streams that it writes."""
    return {
        "cdu": version(),
        "registers": f"{registers.MAJOR}.{registers.MINOR}",
        "bitstream": str(bitstream.VERSION),
    }
