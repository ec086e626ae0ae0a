"""Proofs: a statement about a device, and a method that proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cdu_verif.formal.device import Device

#: Reach of a proof that holds for every reachable state.
UNBOUNDED = "unbounded"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one proof."""

    proven: bool
    message: str = ""  #: of a failure: its description
    trace: Path | None = None  #: waveform (VCD) of the counterexample


class Method(Protocol):
    """A way to prove something about a device."""

    @property
    def engine(self) -> str:
        """Return the engine, for the table."""

    @property
    def reach(self) -> str:
        """Return :data:`UNBOUNDED`, or the bound in cycles from reset."""

    def prove(self, device: Device, folder: Path) -> Verdict:
        """Prove the statement in an empty ``folder``, which keeps the traces."""


@dataclass(frozen=True)
class Property:
    """One row of the table of proofs.

    Parameters
    ----------
    block
        Block with the parameters that are not the default.
    name
        Short name, unique in the block.
    statement
        Statement that is proven, as a sentence for the reader.
    device
        Makes the device; called when the proof begins.
    method
        Method of the proof.
    """

    block: str
    name: str
    statement: str
    device: Callable[[], Device]
    method: Method

    @property
    def label(self) -> str:
        """Return a label such as ``transposer/order``."""
        return f"{self.block}/{self.name}"


def prove(what: Property, folder: Path, mutate: Callable[[str], str] | None = None) -> Verdict:
    """Generate the device of a property and prove it in ``folder``, which is made if missing.

    ``mutate`` changes the Verilog text first; in this way proofs are tried on faulty devices.
    """
    folder.mkdir(parents=True, exist_ok=True)
    device = what.device()
    if mutate:
        device = replace(device, verilog=mutate(device.verilog))
    (folder / f"{device.name}.v").write_text(device.verilog, encoding="utf-8")
    return what.method.prove(device, folder)
