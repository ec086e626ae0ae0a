"""Time of a training step on the CPU: without hooks, with other ways to save memory, and with every policy.

    python benchmarks/step_time.py
    python benchmarks/step_time.py --threads 1 --policies blpa,blpa-coded --rounds 5 --no-page
    python benchmarks/step_time.py --threads 1 --policies none,sfpr --networks resnet18,gpt --only-policies --no-page

Networks have 64 and 128 channels: ResNet-like, two basic blocks of 64 channels at 32 x 32 and two of 128 at 16 x 16; VGG-like,
two convolutions each of 64 channels at 32 x 32 and of 128 at 16 x 16. By name there are also ResNet-18 at 32 x 32, and a GPT of
four blocks of width 256 on texts of 64 letters, half as many as images. Images are random numbers, the optimiser is SGD with
momentum. Codecs compute with backend ``native`` where they have a choice.

All ways take a step in turn, in one process, so that other load of the machine affects all alike. The figure is processor time
on all threads, of forward, loss, backward and update, as a multiple of that of the step without hooks in the same round; the
median over the rounds. Policies that listen to the training do so in the steps before, which do not count. Writes
``docs/evidence/speed_steps.csv``, and some of its rows between the marks of ``docs/evidence/speed.md``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import actcodec
import torch
from actcodec.policies import catalog
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.policy import Policy
from actcodec.study.models import ResNet, Vgg
from cdu_tools.errors import MissingToolError
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from compiled_networks import Gpt
from digest import Table, wrapped
from torch import Tensor, nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint
from torch_means import FEW, TORCH_MEANS, compile_in_place

_PAGE = Path(__file__).parents[1] / "docs/evidence/speed.md"
_ROWS = _PAGE.with_name("speed_steps.csv")
_MARKS = Marks("step-time")
#: The step without hooks, which all others are compared with; and other ways to save memory.
PLAIN, CHECKPOINTS, ON_CPU, BF16 = "no hooks", "checkpoint per block", "save_on_cpu", "bf16 storage"
OTHERS = (CHECKPOINTS, ON_CPU, BF16, *FEW)
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet": partial(ResNet, width=64, depth=2, stages=2),
    "vgg": partial(Vgg, width=64, depth=2, stages=2),
    "resnet18": partial(ResNet, width=64, depth=2, stages=4),
    "gpt": partial(Gpt, width=256, vocabulary=512),
}
#: Networks of the page.
_PAGE_NETWORKS = ("resnet", "vgg")
_CLASSES, _SIDE, _LETTERS, _LENGTH = 10, 32, 512, 64
#: Rows and columns of the page; the others are in the file.
SHOWN = (
    PLAIN,
    CHECKPOINTS,
    ON_CPU,
    BF16,
    *(f"`{name}`" for name in ("sfpr", "jpeg-act", "jpeg-gmc", "actnn-L2", "blpa-coded")),
)
SHOWN_COLUMNS = ("step", "resnet, 1 thread", "vgg, 1 thread", "ratio, resnet", "ratio, vgg")
#: Steps before those that count: kernels are found, and policies that listen to gradients have heard some.
_FIRST_STEPS = 2
#: Multiples of the plain step that policies are to stay within.
_WANTED, _WANTED_OF = 1.25, {"blpa-coded": 1.6}


class Checkpointed(nn.Module):
    """A block that keeps nothing but its input and is computed again in the backward pass."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """As the block."""
        y: Tensor = checkpoint(self.block, x, use_reentrant=False)
        return y


def checkpointed(model: nn.Module) -> nn.Module:
    """The network with a checkpoint for each of its blocks: basic blocks, or what lies between two poolings."""
    if isinstance(model, ResNet):
        model.blocks = nn.Sequential(*map(Checkpointed, model.blocks))
        return model
    assert isinstance(model, Vgg)
    blocks: list[nn.Module] = []
    layers: list[nn.Module] = []
    for layer in model.features:
        layers.append(layer)
        if isinstance(layer, nn.MaxPool2d):
            blocks.append(Checkpointed(nn.Sequential(*layers)))
            layers = []
    model.features = nn.Sequential(*blocks, *layers)
    return model


def stored_as_bf16() -> AbstractContextManager[Any]:
    """Hooks that keep what is not a parameter in bfloat16."""

    def pack(x: Tensor) -> Tensor:
        return x if x.is_leaf or x.dtype != torch.float32 else x.to(torch.bfloat16)

    def unpack(x: Tensor) -> Tensor:
        return x if x.dtype != torch.bfloat16 else x.to(torch.float32)

    return saved_tensors_hooks(pack, unpack)


def policy_of(name: str) -> Policy:
    """A policy with native kernels where it has a choice."""
    options: dict[str, Any] = {"backend": "native"} if "backend" in catalog.policy_options(name) else {}
    return catalog.policy(name, **options)


def available() -> list[str]:
    """Names of the policies that this machine can run: one level of ActNN needs CUDA."""

    def runs(name: str) -> bool:
        try:
            policy_of(name)
        except MissingToolError:
            return False
        return True

    return list(filter(runs, POLICY_NAMES))


def batch_of(network: str, count: int) -> tuple[Tensor, Tensor]:
    """Images and labels, or half as many texts and the letters that follow."""
    if network == "gpt":
        letters = torch.randint(_LETTERS, (count // 2, _LENGTH + 1))
        return letters[:, :-1].contiguous(), letters[:, 1:].contiguous()
    return torch.randn(count, 3, _SIDE, _SIDE), torch.randint(_CLASSES, (count,))


class Way:
    """One way to take a step, with a network of its own."""

    def __init__(self, name: str, network: str, batch: int) -> None:
        torch.manual_seed(0)
        model = NETWORKS[network]()
        self.name = name
        self._model = checkpointed(model) if name == CHECKPOINTS else model
        self._optimizer = torch.optim.SGD(self._model.parameters(), 0.01, momentum=0.9)
        self._images, self._labels = batch_of(network, batch)
        self._policy = None if name in (PLAIN, *OTHERS) else policy_of(name)
        self.kept = float("nan")  #: ratio of what autograd keeps for activations to what is left of it
        if name in FEW:
            compile_in_place(model)
            with TORCH_MEANS[name]():
                self.step()

    def step(self) -> float:
        """Seconds of processor time."""
        begin = time.process_time()
        self._optimizer.zero_grad()
        with self._hooks() as stats:
            loss = nn.functional.cross_entropy(self._model(self._images), self._labels)
        torch.autograd.backward(loss)
        self._optimizer.step()
        if self._policy is not None:
            self.kept = stats.bytes_original / stats.bytes_compressed
        return time.process_time() - begin

    def _hooks(self) -> AbstractContextManager[Any]:
        if self._policy is not None:
            return actcodec.compress_activations(self._model, self._policy)
        return {ON_CPU: save_on_cpu, BF16: stored_as_bf16}.get(self.name, nullcontext)()


@dataclass(frozen=True)
class Measured:
    """A row: multiples of the plain step's processor time."""

    name: str
    network: str
    threads: int
    time: float
    ratio: float


def measure(names: list[str], network: str, batch: int, threads: int, rounds: int) -> list[Measured]:
    """All ways on one network."""
    torch.set_num_threads(threads)
    ways = [Way(name, network, batch) for name in (PLAIN, *names)]
    multiples: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(-_FIRST_STEPS, rounds):
        seconds = {way.name: way.step() for way in ways}
        if number >= 0:
            for name, spent in seconds.items():
                multiples[name].append(spent / seconds[PLAIN])
        print(f"{network}, {threads} thread(s): round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return [Measured(way.name, network, threads, statistics.median(multiples[way.name]), way.kept) for way in ways]


def table_of(rows: list[Measured]) -> Table:
    """The table of all ways: a row for each way, a column for each network and number of threads."""
    places = list(dict.fromkeys((row.network, row.threads) for row in rows))
    found = {(row.name, row.network, row.threads): row for row in rows}
    names = list(dict.fromkeys(row.name for row in rows))
    header = ("step", *(f"{network}, {threads} thread{'s' * (threads > 1)}" for network, threads in places))
    header += tuple(f"ratio, {network}" for network in dict.fromkeys(network for network, _ in places))
    cells = []
    for name in names:
        times = [f"{found[name, *place].time:.2f}" for place in places]
        ratios = {network: found[name, network, threads].ratio for network, threads in places}
        cells.append((f"`{name}`" if name in POLICY_NAMES else name, *times, *map(_ratio, ratios.values())))
    return Table(header, tuple(cells))


def _ratio(ratio: float) -> str:
    return "" if ratio != ratio else f"{ratio:.2f}"


def summary(rows: list[Measured]) -> str:
    """Return a sentence with the policies that need no more time than wanted."""
    policies = {row.name for row in rows if row.name in POLICY_NAMES}
    beyond = {row.name for row in rows if row.name in policies and row.time > _WANTED_OF.get(row.name, _WANTED)}
    within = [f"`{name}`" for name in sorted(policies - beyond)]
    wanted = f"{_WANTED} times the plain step ({', '.join(f'`{name}` {most}' for name, most in _WANTED_OF.items())})"
    return wrapped(f"{len(within)} of {len(policies)} policies stay within {wanted} everywhere: {', '.join(within) or 'none'}.")


def write_page(text: str, table: Table) -> None:
    """Write a text and some rows between the marks of the page, and all rows beside it."""
    columns = [name for name in SHOWN_COLUMNS if name in table.header]
    _MARKS.put(_PAGE, f"\n\n{text}\n\n{table.where(step=SHOWN).only(*columns).markdown()}\n\n")
    write_whole(_ROWS, table.csv())


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", help="names with commas between; all unless given")
    parser.add_argument("--networks", default=",".join(_PAGE_NETWORKS), help=f"{', '.join(NETWORKS)}, with commas between")
    parser.add_argument("--only-policies", action="store_true", help="leave out other ways to save memory")
    parser.add_argument("--batch", type=int, default=16, help="images")
    parser.add_argument("--threads", default="1,2", help="numbers with commas between")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each way that count")
    parser.add_argument("--no-page", action="store_true", help="print the table, and write nothing")
    arguments = parser.parse_args()
    others = () if arguments.only_policies else OTHERS
    names = [*others, *(arguments.policies.split(",") if arguments.policies else available())]
    places = [(network, int(threads)) for network in arguments.networks.split(",") for threads in arguments.threads.split(",")]
    rows = [row for place in places for row in measure(names, place[0], arguments.batch, place[1], arguments.rounds)]
    table = table_of(rows)
    if arguments.no_page:
        print(table.markdown())
        return
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    setting = f"Batch {arguments.batch}, medians of {arguments.rounds} rounds."
    setting += f" Load of {os.cpu_count()} cores in the last 1, 5, 15 minutes: {load}."
    write_page(f"{setting}\n{summary(rows)}", table)


if __name__ == "__main__":
    main()
