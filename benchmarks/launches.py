"""Launches and questions to the host that a policy adds to a step, for each tensor that a codec compresses; needs no GPU.

    python benchmarks/launches.py
    python benchmarks/launches.py --backend torch --policies sfpr,jpeg-act --networks resnet18

Prints a markdown table of the second step of each policy, in which all is decided as in the first one. The definitions are in
:mod:`actcodec.study.launches`. Networks and batches are those of ``step_time.py``, with 4 images or 2 texts. Backend ``triton``
runs in the interpreter, with ``TRITON_INTERPRET=1`` in the environment, and takes minutes.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from actcodec.policies import catalog
from actcodec.study.launches import StepCount, step_count
from digest import Table
from step_time import NETWORKS, batch_of
from torch import nn

_BATCH = 4
_POLICIES = ("none", "sfpr", "jpeg-act", "jpeg-gmc", "blpa-coded", "transformer")


def counted(name: str, network: str, backend: str) -> StepCount:
    """The counts of one policy on one network."""
    torch.manual_seed(0)
    model = NETWORKS[network]()
    inputs, labels = batch_of(network, _BATCH)
    options: dict[str, Any] = {"backend": backend} if "backend" in catalog.policy_options(name) else {}
    return step_count(model, catalog.policy(name, **options), lambda: nn.functional.cross_entropy(model(inputs), labels))


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", default=",".join(_POLICIES), help="names with commas between")
    parser.add_argument("--networks", default="resnet18,gpt", help=f"{', '.join(NETWORKS)}, with commas between")
    parser.add_argument("--backend", default="native", help="of codecs that have a choice")
    arguments = parser.parse_args()
    rows = []
    for network in arguments.networks.split(","):
        for name in arguments.policies.split(","):
            found = counted(name, network, arguments.backend)
            rows.append((network, f"`{name}`", str(found.coded), f"{found.launches:.1f}", f"{found.questions:.2f}"))
    print(Table(("network", "policy", "coded tensors", "launches per tensor", "questions per tensor"), tuple(rows)).markdown())


if __name__ == "__main__":
    main()
