"""nvCOMP on a CUDA device beside this project's codecs, at equal error on tensors that seven networks save.

    pip install nvidia-nvcomp-cu13
    python benchmarks/gpu_peers.py --record numbers.npz --data cifar10.npz    # on any machine, with 'actcodec[peers]'
    python benchmarks/gpu_peers.py --numbers numbers.npz                      # on the device

nvCOMP's codecs in Python are lossless. They get the numbers of equal steps of the tensors of benchmarks/peer_codecs.py,
of 8 bits where these fit, with steps that make an error of 0.1 of the root mean square: what blosc2 gets there. Prints
for each codec the ratio of each network, float32 over all that is stored, and the speed there and back in GB/s of
float32, medians of some runs, on the numbers of one network again and again until there are 64 MiB of them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cdu_tools.report import Table
from torch import Tensor

_ERROR, _FLOAT_BYTES, _GIGA = 0.1, 4, 1e9
_SPEED_NETWORK, _SPEED_BYTES, _WARM, _RUNS = "resnet", 64 << 20, 3, 10
ALGORITHMS = ("ANS", "Bitcomp", "Cascaded", "Deflate", "GDeflate", "LZ4", "Snappy", "Zstd")
Numbers = np.ndarray[Any, np.dtype[Any]]


def record(data: Path, target: Path) -> None:
    """Write the numbers of all tensors, by network and place."""
    from actcodec.study.data import load
    from peer_codecs import LIBRARY, OWN, recorded
    from recorded import IMAGES, trainings

    found: dict[str, Numbers] = {}
    for network, training in trainings(load("cifar10", data, IMAGES), OWN, LIBRARY):
        for place, x in enumerate(recorded(training)):
            step = _ERROR * float(x.square().mean().sqrt().clamp_min(1e-30)) * 12**0.5
            numbers = (x / step).round_()
            fits = numbers.abs().max() <= torch.iinfo(torch.int8).max
            found[f"{network}/{place}"] = numbers.to(torch.int8 if fits else torch.int16).numpy()
    with target.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **found)


def by_network(path: Path) -> dict[str, list[Numbers]]:
    """The tensors of each network."""
    networks: dict[str, list[Numbers]] = {}
    with np.load(path) as file:
        for name in file.files:
            networks.setdefault(name.split("/")[0], []).append(file[name])
    return networks


def ratio(nvcomp: Any, codec: Any, tensors: list[Numbers]) -> float:
    """Return the ratio of all tensors together; every tensor must be restored exactly."""
    original = stored = 0
    for numbers in tensors:
        there = torch.from_numpy(numbers.flatten()).cuda()
        coded = codec.encode(nvcomp.as_array(there.view(torch.uint8)))
        back: Tensor = torch.as_tensor(codec.decode(coded), device="cuda").view(torch.uint8)
        assert torch.equal(back, there.view(torch.uint8)), "nvCOMP did not give back what it got"
        original += _FLOAT_BYTES * numbers.size
        stored += coded.buffer_size
    return original / int(stored)


def seconds(action: Callable[[], object]) -> float:
    """Median of the seconds that the device takes."""
    times: list[float] = []
    for count in range(_WARM + _RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
        begin.record()
        action()
        torch.cuda.synchronize()
        end.record()
        end.synchronize()
        if count >= _WARM:
            times.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(times)


def rows(networks: dict[str, list[Numbers]]) -> Iterator[list[str]]:
    """Yield a row for each codec."""
    nvcomp = import_module("nvidia.nvcomp")
    narrow = np.concatenate([one.flatten() for one in networks[_SPEED_NETWORK] if one.dtype == np.int8])
    many = torch.from_numpy(np.resize(narrow, _SPEED_BYTES)).cuda()
    for algorithm in ALGORITHMS:
        codec = nvcomp.Codec(algorithm=algorithm)
        source = nvcomp.as_array(many)
        coded = codec.encode(source)
        speeds = (seconds(lambda: codec.encode(source)), seconds(lambda: codec.decode(coded)))  # noqa: B023
        cells = [f"{ratio(nvcomp, codec, tensors):.2f}" for tensors in networks.values()]
        yield [algorithm, *cells, *(f"{_FLOAT_BYTES * many.numel() / taken / _GIGA:.0f}" for taken in speeds)]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="write the numbers to this file, of networks trained on --data")
    parser.add_argument("--data", type=Path, help="CIFAR-10 as .npz")
    parser.add_argument("--numbers", type=Path, help="measure with these numbers")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.data, arguments.record)
    if arguments.numbers:
        networks = by_network(arguments.numbers)
        print(torch.cuda.get_device_name())
        print(Table(["nvCOMP", *networks, "compress GB/s", "decompress GB/s"], list(rows(networks))).markdown())


if __name__ == "__main__":
    main()
