"""A training step of the GPU: operations in order, and the activations that they save for the backward pass.

Descriptions are traced from real models (:mod:`cdu_offload.trace`) and kept in ``networks.json``, which
``benchmarks/offload_data.py`` writes, so that simulating needs no torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any

from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

#: Activations are float32.
VALUE_BYTES = 4
#: The rows of JPEG-ACT's table "which activation gets what": dense maps; ReLU results needed only for their signs; maps with
#: many zeros needed for their values; shapes that do not fit 8x8 blocks.
KINDS = ("dense", "signs", "sparse", "unfit")
#: Input and result of a batch normalisation whose result is kept after a ReLU. One copy can serve both.
NORM_INPUT, NORM_RESULT = "norm input", "norm result"
SHIPPED = Path(__file__).with_name("networks.json")


@dataclass(frozen=True)
class OffloadActivation:
    """A tensor that autograd keeps from the forward to the backward pass."""

    producer: str  #: the operation that produced it, in the words of ``cdu train``: conv, relu, pool, sum, input ...
    kind: str  #: one of :data:`KINDS`
    shape: tuple[int, ...]
    pair: str = ""  #: NORM_INPUT or NORM_RESULT of a pair that is one piece of information

    @property
    def nbytes(self) -> int:
        """Uncompressed bytes."""
        return VALUE_BYTES * prod(self.shape)


@dataclass(frozen=True)
class LayerWork:
    """One kernel: its computation, its traffic in GPU memory, and the activations it reads or writes (list indices)."""

    name: str
    flops: int
    nbytes: int  #: arguments and results, each once
    releases: tuple[int, ...] = ()  #: forward: this is their last reader; they may go when it starts
    makes: tuple[int, ...] = ()  #: forward: its results that no later operation reads; they may go when it has ended
    needs: tuple[int, ...] = ()  #: backward: cannot start without their values


@dataclass(frozen=True)
class OffloadNetwork:
    """A training step. The last backward work is the optimizer's."""

    name: str
    title: str
    batch: int
    family: str  #: the model of ``cdu train`` whose measured ratios apply to it
    activations: tuple[OffloadActivation, ...]
    forward: tuple[LayerWork, ...]
    backward: tuple[LayerWork, ...]

    @property
    def saved_bytes(self) -> int:
        """Uncompressed bytes of all activations."""
        return sum(activation.nbytes for activation in self.activations)

    @property
    def last_layer(self) -> int:
        """The last layer that keeps activations. They stay in memory, because the backward pass begins with them."""
        return max(self.layer_of, default=0)

    @property
    def offloaded_bytes(self) -> int:
        """Uncompressed bytes of all activations except those of the last layer."""
        kept = self.last_layer
        return sum(a.nbytes for a, layer in zip(self.activations, self.layer_of, strict=True) if layer < kept)

    @cached_property
    def forward_layers(self) -> tuple[int, ...]:
        """Layer of each forward work.

        A convolution or matrix product opens a layer; later kernels belong to it until the next one opens, as in-place
        activation functions do in vDNN.
        """
        layers, layer, opened = [], 0, False
        for work in self.forward:
            layer += bool(work.flops) and opened
            opened = opened or bool(work.flops)
            layers.append(layer)
        return tuple(layers)

    @cached_property
    def layer_of(self) -> tuple[int, ...]:
        """Layer of each activation: that of its last reader, with which vDNN sends it away."""
        found: dict[int, int] = {}
        for work, layer in zip(self.forward, self.forward_layers, strict=True):
            found |= dict.fromkeys((*work.releases, *work.makes), layer)
        return tuple(found[number] for number in range(len(self.activations)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for :meth:`from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OffloadNetwork:
        """Invert :meth:`to_dict`, also after a round trip through JSON."""

        def works(rows: list[dict[str, Any]]) -> tuple[LayerWork, ...]:
            lists = ("releases", "makes", "needs")
            return tuple(
                LayerWork(row["name"], row["flops"], row["nbytes"], *(tuple(row[key]) for key in lists)) for row in rows
            )

        return cls(
            data["name"],
            data["title"],
            data["batch"],
            data["family"],
            tuple(
                OffloadActivation(row["producer"], row["kind"], tuple(row["shape"]), row["pair"]) for row in data["activations"]
            ),
            works(data["forward"]),
            works(data["backward"]),
        )


def shipped() -> dict[str, OffloadNetwork]:
    """Return the networks that come with the package, by name."""
    rows = json.loads(SHIPPED.read_text(encoding="utf-8"))["networks"]
    return {row["name"]: OffloadNetwork.from_dict(row) for row in rows}


def chosen(names: list[str] | None) -> list[OffloadNetwork]:
    """Return some of the shipped networks (all if none is named); UserError for an unknown name."""
    known = shipped()
    for name in names or ():
        if name not in known:
            raise UserError(unknown("--network", name, known))
    return [known[name] for name in names or known]
