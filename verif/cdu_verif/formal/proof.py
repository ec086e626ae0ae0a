"""What a proof is: a statement about a device, and a method that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cdu_verif.formal.device import Device

#: How far a proof reaches when it holds for every reachable state.
UNBOUNDED = "unbounded"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one proof."""

    proven: bool
    message: str = ""  #: of a failure: what was found
    trace: Path | None = None  #: waveform (VCD) of the counterexample


class Method(Protocol):
    """A way to prove something about a device."""

    @property
    def engine(self) -> str:
        """What does the work, for the table."""

    @property
    def reach(self) -> str:
        """:data:`UNBOUNDED`, or the bound in cycles from reset."""

    def prove(self, device: Device, folder: Path) -> Verdict:
        """Prove it in an empty ``folder``, which keeps the traces."""


@dataclass(frozen=True)
class Property:
    """One line of the table.

    Parameters
    ----------
    block
        Block with the parameters that are not the default.
    name
        Short name, unique in the block.
    statement
        What is proven, as a sentence for the reader.
    device
        Makes the device; called when the proof begins.
    method
        How it is proven.
    """

    block: str
    name: str
    statement: str
    device: Callable[[], Device]
    method: Method

    @property
    def label(self) -> str:
        """``transposer/order``."""
        return f"{self.block}/{self.name}"


def prove(what: Property, folder: Path, mutate: Callable[[str], str] | None = None) -> Verdict:
    """Generate the device of a property and prove it in ``folder``, which is made when missing.

    ``mutate`` changes the Verilog text before: proofs are tried on faulty devices this way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    device = what.device()
    if mutate:
        device = replace(device, verilog=mutate(device.verilog))
    (folder / f"{device.name}.v").write_text(device.verilog, encoding="utf-8")
    return what.method.prove(device, folder)
