"""A vision transformer and a GPT trained until their loss is flat, without compression and with it, from the same start.

    python benchmarks/transformer_training.py --steps 2000                     # goes on where the table stops
    python benchmarks/transformer_training.py --device cuda --minutes 3 --all-at-once
    python benchmarks/transformer_training.py --steps 20 --width 32 --depth 2 --minutes 5 --table build/tried.csv

The vision transformer (patches of 4 x 4, CIFAR-10 from the folder that CDU_DATA_DIR names, every second image mirrored) and the
GPT-2 of transformers (letters of the Python files of the standard library, but for each twentieth file, which is held out)
have 4 layers of width 256, 3.2 million parameters. AdamW, rates that rise over 5 % of the steps and fall over the last 30 %;
runs of one seed have the same first weights and batches. Every row is written as soon as it is there:

loss, score
    of what is held out: nats, and accuracy (%) or perplexity;
ratio, cosine
    of everything that a step of a few samples keeps but weights, by the policy itself, and of its gradient with the exact one.

The steps in between take codecs by what they do to values (benchmarks/values_only.py), as packing and coding would be most of
their time on a GPU. ``--all-at-once`` begins all runs together and finds out how many steps fit the minutes: each run times
a few, and all take as many as the slowest can. Prints a markdown table of where runs ended.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
import torch.multiprocessing as mp
from actcodec.policies.catalog import policy
from actcodec.study import data
from actcodec.study.diagnosis import Passes
from actcodec.study.gradient_similarity import cosine
from actcodec.study.models import VisionTransformer, library
from actcodec.training.activation_compression import compress_activations
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from torch import Tensor, nn
from torch.nn import functional as F
from values_only import values_only

TABLE = Path(__file__).parent.parent / "docs" / "evidence" / "transformer_training.csv"
NONE = "none"
#: Policies and their options, by what the table calls them.
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    NONE: (NONE, {}),
    "transformer": ("transformer", {}),
    "transformer-nvfp4": ("transformer-nvfp4", {}),
    "transformer bits=3": ("transformer", {"bits": 3}),
    "nvfp4": ("nvfp4", {}),
    "blpa-coded bits=6": ("blpa-coded", {"bits": 6}),
}
#: Runs, the seeds of a policy one after the other; of what is compared most there are two.
SEEDS = {NONE: (0, 1), "transformer": (0, 1)}
MODELS = ("vit", "gpt")
_CONTEXT, _LETTERS, _HELD_OUT = 128, 128, 20
_BATCHES = {"vit": 128, "gpt": 32}
#: Samples of the step whose bytes and gradient are measured, and how many are held out.
_MEASURED, _TESTED = {"vit": 8, "gpt": 2}, {"vit": 10000, "gpt": 512}
_RATE, _RISE, _FALL, _LARGEST_GRADIENT = 1e-3, 0.05, 0.3, 1.0
#: Rows of a run; steps that come before those that are timed, and those; the part of the time that steps may take.
_ROWS, _WARM, _TIMED, _SHARE = 8, 10, 15, 0.7


@dataclass(frozen=True)
class Row:
    """The state of a run after ``step`` of its ``steps``."""

    model: str
    policy: str
    seed: int
    steps: int
    step: int
    training_loss: float  #: mean since the last row
    loss: float
    score: float
    ratio: float
    cosine: float
    ms: float  #: wall clock per step, whatever else runs
    device: str


@dataclass(frozen=True)
class Run:
    """One training."""

    model: str
    policy: str
    seed: int
    width: int
    depth: int
    device: str


#: Loss of a network for numbered samples of the text or images: ``(network, inputs, targets)``.
Batch = tuple[Tensor, Tensor]


class Images:
    """CIFAR-10 for a vision transformer."""

    def __init__(self, run: Run) -> None:
        found = data.load("cifar10").to(torch.device(run.device))
        self._train, self._test = (found.train_inputs, found.train_targets), (found.test_inputs, found.test_targets)

    def network(self, width: int, depth: int) -> nn.Module:
        """The network."""
        return VisionTransformer(3, 10, 32, width, depth)

    def batch(self, count: int, order: torch.Generator) -> Batch:
        """A batch of training images, half of them mirrored."""
        inputs, targets = self._train
        chosen = torch.randint(len(inputs), (count,), generator=order).to(inputs.device)
        mirrored = (torch.rand(count, generator=order) < 0.5).to(inputs.device)[:, None, None, None]
        images = inputs[chosen]
        return torch.where(mirrored, images.flip(3), images), targets[chosen]

    def held_out(self, count: int) -> Iterator[Batch]:
        """Test images."""
        return zip(*(torch.split(part[:count], 500) for part in self._test), strict=True)

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Cross-entropy of the class."""
        return F.cross_entropy(network(batch[0]), batch[1])

    def score(self, network: nn.Module, batches: Iterator[Batch]) -> tuple[float, float]:
        """Loss, and accuracy in percent."""
        logits, targets = zip(*((network(inputs), targets) for inputs, targets in batches), strict=True)
        all_logits, all_targets = torch.cat(logits), torch.cat(targets)
        right = (all_logits.argmax(1) == all_targets).double().mean()
        return float(F.cross_entropy(all_logits, all_targets)), 100 * float(right)


class Text:
    """Python files of the standard library for a GPT."""

    def __init__(self, run: Run) -> None:
        files = sorted(Path(os.__file__).parent.glob("*.py"))
        kept = [file for place, file in enumerate(files) if place % _HELD_OUT]
        self._train, self._test = (
            torch.tensor(list(b"".join(file.read_bytes() for file in part)), dtype=torch.int64)
            .clamp_(max=_LETTERS - 1)
            .to(run.device)
            for part in (kept, files[::_HELD_OUT])
        )

    def network(self, width: int, depth: int) -> nn.Module:
        """The network: GPT-2 as it is in its library, GELU written out, without dropout."""
        models = library.transformers()
        shape = {"n_layer": depth, "n_head": width // 32, "n_embd": width, "n_positions": _CONTEXT}
        dropouts = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        made: nn.Module = models.GPT2LMHeadModel(
            models.GPT2Config(vocab_size=_LETTERS, **shape, **dropouts, bos_token_id=None, eos_token_id=None)
        )
        return made

    def batch(self, count: int, order: torch.Generator) -> Batch:
        """Pieces of the text, and the letters that follow."""
        starts = torch.randint(len(self._train) - _CONTEXT, (count, 1), generator=order).to(self._train.device)
        return self._pieces(self._train, starts)

    def held_out(self, count: int) -> Iterator[Batch]:
        """Pieces of files that are not trained on."""
        starts = torch.linspace(0, len(self._test) - _CONTEXT - 1, count).long().to(self._test.device)[:, None]
        return (self._pieces(self._test, part) for part in torch.split(starts, 64))

    def _pieces(self, letters: Tensor, starts: Tensor) -> Batch:
        places = starts + torch.arange(_CONTEXT, device=starts.device)
        return letters[places], letters[places + 1]

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Cross-entropy of the next letter."""
        logits = network(batch[0], use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), batch[1].flatten())

    def score(self, network: nn.Module, batches: Iterator[Batch]) -> tuple[float, float]:
        """Loss in nats a letter, and perplexity."""
        loss = fmean(float(self.loss(network, batch)) for batch in batches)
        return loss, math.exp(loss)


def train(run: Run, steps: int | None, end: float, barrier: Barrier | None, speeds: Any, emit: Callable[[Row], None]) -> None:
    """One run; ends when the time is over. ``steps`` None: as many as the slowest of all runs can take until then."""
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    warnings.simplefilter("ignore")
    task = Images(run) if run.model == "vit" else Text(run)
    torch.manual_seed(run.seed)
    network = task.network(run.width, run.depth).to(run.device).train()
    name, options = POLICIES[run.policy]
    chosen = None if name == NONE else policy(name, values_only, **options)
    if steps is None:
        assert barrier is not None, "all runs begin together"
        steps = _fitting(task, network, run, chosen, end, barrier, speeds)
        torch.manual_seed(run.seed)
        network = task.network(run.width, run.depth).to(run.device).train()
    optimizer = torch.optim.AdamW(network.parameters(), _RATE, weight_decay=0.05, fused=run.device != "cpu")
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (_RISE * steps), 1.0, (steps - step) / (_FALL * steps))
    )
    order = torch.Generator().manual_seed(run.seed)
    losses: list[Tensor] = []
    marks = {steps * part // _ROWS for part in range(1, _ROWS + 1)}
    since = time.monotonic()
    for step in range(1, steps + 1):
        losses.append(_step(task, network, run, chosen, task.batch(_BATCHES[run.model], order)))
        optimizer.step()
        schedule.step()
        over = time.time() > end
        if step in marks or over:
            training_loss = float(torch.stack(losses).mean())
            ms = 1e3 * (time.monotonic() - since) / len(losses)
            emit(Row(*_key(run), steps, step, training_loss, *_measured(task, network, run), ms, _device_name(run)))
            losses, since = [], time.monotonic()
        if over:
            return


def _step(task: Images | Text, network: nn.Module, run: Run, chosen: Any, batch: Batch) -> Tensor:
    """Gradients of a batch, cut back; its loss."""
    network.zero_grad(set_to_none=True)
    if chosen is None:
        loss = task.loss(network, batch)
    else:
        with compress_activations(network, chosen):
            loss = task.loss(network, batch)
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(network.parameters(), _LARGEST_GRADIENT)
    return loss.detach()


def _fitting(task: Images | Text, network: nn.Module, run: Run, chosen: Any, end: float, barrier: Barrier, speeds: Any) -> int:
    """Return the number of steps that all runs can take until the end."""
    order = torch.Generator().manual_seed(0)
    for step in range(_WARM + _TIMED):
        if step == _WARM:
            barrier.wait()
            start = time.monotonic()
        _step(task, network, run, chosen, task.batch(_BATCHES[run.model], order)).item()
    with speeds.get_lock():
        speeds.value = max(speeds.value, (time.monotonic() - start) / _TIMED)
    barrier.wait()
    return max(_ROWS, int(_SHARE * (end - time.time()) / speeds.value) // _ROWS * _ROWS)


def _measured(task: Images | Text, network: nn.Module, run: Run) -> tuple[float, float, float, float]:
    """Loss and score of what is held out; ratio and cosine of a small step by the policy itself."""
    network.eval()
    with torch.no_grad():
        loss, score = task.score(network, task.held_out(_TESTED[run.model]))
    network.train()
    name, options = POLICIES[run.policy]
    few = task.batch(_MEASURED[run.model], torch.Generator().manual_seed(1))
    passes = Passes(network, lambda: task.loss(network, few))
    gradient, kept = passes.outcome(policy(name, **options))
    assert kept is not None, "the step was compressed"
    return loss, score, kept.ratio_of_everything, cosine(passes.gradient(), gradient)


def _key(run: Run) -> tuple[str, str, int]:
    return run.model, run.policy, run.seed


def _device_name(run: Run) -> str:
    return run.device if run.device == "cpu" else torch.cuda.get_device_name(run.device)


def rows(table: Path) -> list[Row]:
    """Return the rows of the table."""
    if not table.exists():
        return []
    kinds = {"str": str, "int": int, "float": float}
    found = csv.DictReader(table.read_text("utf-8").splitlines())
    return [Row(**{one.name: kinds[str(one.type)](row[one.name]) for one in fields(Row)}) for row in found]


def write(table: Path, found: list[Row]) -> None:
    """The table anew."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([one.name for one in fields(Row)])
    for row in found:
        values = [getattr(row, one.name) for one in fields(Row)]
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in values])
    write_whole(table, file.getvalue())


def _work(run: Run, steps: int | None, end: float, barrier: Barrier | None, speeds: Any, queue: Any) -> None:
    """A run in a process of its own; None tells that it is over. Where one fails none is to wait for it."""
    try:
        train(run, steps, end, barrier, speeds, queue.put)
    except BaseException:
        if barrier is not None:
            barrier.abort()
        raise
    finally:
        queue.put(None)


def wanted(arguments: argparse.Namespace, table: Path) -> list[Run]:
    """Runs that are not over, those of the first seeds first."""
    over = {(row.model, row.policy, row.seed) for row in rows(table) if row.step == row.steps}
    runs = [
        Run(model, label, seed, arguments.width, arguments.depth, arguments.device)
        for seed in range(arguments.seeds)
        for label in arguments.policies
        for model in arguments.models
        if seed == 0 or seed in SEEDS.get(label, ())
    ]
    return [run for run in runs if _key(run) not in over]


def summary(found: list[Row]) -> Table:
    """Return a table of the last row of each run, beside the uncompressed run of its seed."""
    ends: dict[tuple[str, str, int], Row] = {}
    for row in found:
        ends[row.model, row.policy, row.seed] = row
    lines = []
    for (model, label, seed), row in ends.items():
        base = ends.get((model, NONE, seed))
        difference = f"{row.loss - base.loss:+.4f}" if base and base.step == row.step and label != NONE else ""
        numbers = (f"{row.loss:.4f}", difference, f"{row.score:.3f}", f"{row.ratio:.2f}", f"{row.cosine:.5f}", f"{row.ms:.0f}")
        lines.append((model, label, str(seed), f"{row.step} of {row.steps}", *numbers))
    return Table(("model", "policy", "seed", "steps", "loss", "difference", "score", "ratio", "cosine", "ms"), lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=tuple(POLICIES))
    parser.add_argument("--seeds", type=int, default=2, help="from 0 on (2); policies other than the first two have one")
    parser.add_argument("--steps", type=int, help="of a run; needed unless --all-at-once finds out")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end all runs after so many minutes")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time (1)")
    parser.add_argument("--all-at-once", action="store_true", help="begin all together; needs --minutes")
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    if arguments.steps is None and not (arguments.all_at_once and math.isfinite(arguments.minutes)):
        parser.error("give --steps, or --all-at-once with --minutes")
    end, table = time.time() + 60 * arguments.minutes, arguments.table
    runs, found = wanted(arguments, table), rows(table)
    unfinished = {_key(run) for run in runs}
    found = [row for row in found if (row.model, row.policy, row.seed) not in unfinished]
    context = mp.get_context("spawn")
    queue, speeds = context.Queue(), context.Value("d", 0.0)
    together = len(runs) if arguments.all_at_once else arguments.processes
    barrier = context.Barrier(together) if arguments.steps is None else None
    waiting, running = list(runs), 0
    table.parent.mkdir(parents=True, exist_ok=True)
    while waiting or running:
        while waiting and running < together and time.time() < end:
            work = (waiting.pop(0), arguments.steps, end, barrier, speeds, queue)
            context.Process(target=_work, args=work).start()
            running += 1
        if not running:
            break
        row = queue.get()
        if row is None:
            running -= 1
            continue
        found.append(row)
        write(table, found)
        print(f"{row.model} {row.policy} {row.seed}: {row.step} of {row.steps}, loss {row.loss:.4f}", flush=True)
    print(summary(found).markdown())


if __name__ == "__main__":
    main()
