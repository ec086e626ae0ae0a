"""Launches and questions to the host that a policy adds to a step, for each tensor that a codec compresses; needs no GPU.

    python benchmarks/launches.py
    python benchmarks/launches.py --backend torch --policies sfpr,jpeg-act --networks resnet18
    TRITON_INTERPRET=1 python benchmarks/launches.py --codecs > docs/user/gpu_launches.csv

Prints a markdown table of the second step of each policy, in which all is decided as in the first one. The definitions are in
:mod:`actcodec.study.launches`. Networks and batches are those of ``step_time.py``, with 4 images or 2 texts. Backend ``triton``
runs in the interpreter, with ``TRITON_INTERPRET=1`` in the environment, and takes minutes. With ``--codecs`` it
prints CSV for one tensor, (4, 8, 16, 16), that codecs of backend ``triton`` compress and decompress once before.
"""

from __future__ import annotations

import argparse
from typing import Any

import actcodec
import torch
from actcodec.codecs.centring import compress_centred, decompress_centred
from actcodec.policies import catalog
from actcodec.study.launches import LaunchCounter, StepCount, step_count
from digest import Table
from step_time import NETWORKS, batch_of
from torch import nn

_BATCH = 4
_CODECS = (
    *("sfpr", "sfpr+zvc", "jpeg-act", "jpeg-gmc", "brc", "division", "actnn", "blpa", "autoquant", "actnn-sample"),
    *("int8-rows", "mxint8", "nvfp4"),
)
_POLICIES = ("none", "sfpr", "jpeg-act", "jpeg-gmc", "blpa-coded", "transformer")


def counted(name: str, network: str, backend: str) -> StepCount:
    """The counts of one policy on one network."""
    torch.manual_seed(0)
    model = NETWORKS[network]()
    inputs, labels = batch_of(network, _BATCH)
    options: dict[str, Any] = {"backend": backend} if "backend" in catalog.policy_options(name) else {}
    return step_count(model, catalog.policy(name, **options), lambda: nn.functional.cross_entropy(model(inputs), labels))


def of_codecs() -> Table:
    """The counts of codecs with backend ``triton`` on one tensor."""
    x = torch.randn(4, 8, 16, 16, generator=torch.Generator().manual_seed(0)).relu()
    rows = []
    for name in _CODECS:
        codec = actcodec.codec(name, backend="triton")
        decompress_centred(compress_centred(x, codec), codec)
        with LaunchCounter() as pack:
            packed = compress_centred(x, codec)
        with LaunchCounter() as unpack:
            decompress_centred(packed, codec)
        counts = [(one.counted.launches, one.counted.questions.total()) for one in (pack, unpack)]
        rows.append((name, *(str(count) for each in counts for count in each)))
    header = ("codec", "launches to compress", "questions to compress", "launches to decompress", "questions to decompress")
    return Table(header, tuple(rows))


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", default=",".join(_POLICIES), help="names with commas between")
    parser.add_argument("--networks", default="resnet18,gpt", help=f"{', '.join(NETWORKS)}, with commas between")
    parser.add_argument("--backend", default="native", help="of codecs that have a choice")
    parser.add_argument("--codecs", action="store_true", help="count for one tensor and codecs with backend triton")
    arguments = parser.parse_args()
    if arguments.codecs:
        print(of_codecs().csv(), end="")
        return
    rows = []
    for network in arguments.networks.split(","):
        for name in arguments.policies.split(","):
            found = counted(name, network, arguments.backend)
            rows.append((network, f"`{name}`", str(found.coded), f"{found.launches:.1f}", f"{found.questions:.2f}"))
    print(Table(("network", "policy", "coded tensors", "launches per tensor", "questions per tensor"), tuple(rows)).markdown())


if __name__ == "__main__":
    main()
