"""Networks and machines small enough to follow by hand: one operation, one byte, one second."""

from cdu_offload.network import LayerWork, OffloadActivation, OffloadNetwork
from cdu_offload.offload import PlainOffload
from cdu_offload.platform import Platform
from cdu_offload.ratios import Ratios
from cdu_offload.unit import OffloadUnit

#: Fast enough to take no time.
INSTANT = 1e30


def chain(forward, backward, values, kind="dense", nbytes=0):
    """Layers of one work each: layer i reads activation i, of ``values[i]`` float32 values, and asks it back."""
    activations = tuple(OffloadActivation("conv", kind, (count,)) for count in values)
    works = tuple(LayerWork("conv", flops, nbytes, releases=(layer,)) for layer, flops in enumerate(forward))
    back = tuple(LayerWork("conv", flops, nbytes, needs=(layer,)) for layer, flops in reversed(list(enumerate(backward))))
    return OffloadNetwork("chain", "Chain", 1, "resnet", activations, works, back)


def machine(flops=1.0, memory=INSTANT, link=1.0, port=INSTANT, packet=1):
    return Platform(flops, memory, link, port, packet)


def plain(platform):
    return PlainOffload(platform)


def constant_ratio(ratio):
    return Ratios({("dense", "conv"): (float(ratio), 1.0)})


def cdus(count, clock, values_per_cycle=None, start=0.0):
    rate = 8.0 * count if values_per_cycle is None else values_per_cycle
    return OffloadUnit(count, clock, {"compress": rate, "decompress": rate}, {}, {"compress": start, "decompress": start})
