"""Time and memory of a training step of ResNet-18 on images of 32x32, uncompressed against each codec.

    python benchmarks/training_speed.py
    python benchmarks/training_speed.py --backend torch --batch 128 --policies sfpr,jpeg-act

The network is ResNet-18 with the stem that is usual for CIFAR (3x3, stride 1, no pooling), the images are random numbers, the
optimiser is SGD with momentum. Every policy has a process of its own, all of them take their steps in turn, so
that other load of the machine affects all alike. Prints a markdown table:

step
    median of the seconds of forward, loss, backward and update;
time
    these seconds as a multiple of the step without any hook (``without``);
CPU time
    the same multiple, of the processor's time that the step took on all threads: it does not count what other programs take;
activations
    MiB that autograd keeps for activations, before and after compression (``kept``);
peak
    MiB by which the resident set of the process grew at its peak relative to before the first step (getrusage), including
    gradients and the optimiser's state. glibc is told to give blocks of 1 MiB and more back to the system when they are
    freed (``MALLOC_MMAP_THRESHOLD_``); by default it keeps them in pieces between compressed tensors, and the peak shows
    glibc's behaviour more than the activations.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

from cdu_tools.report import table_row

#: The step without hooks, which all others are compared with.
WITHOUT = "without"
POLICIES = ("none", "bf16", "int8-rows", "sfpr", "sfpr+zvc", "division", "division-channel", "actnn", "actnn-L2", "jpeg-act")
_KIB_PER_MIB, _MIB = 1 << 10, 1 << 20


def serve(policy_name: str, backend: str, batch: int, threads: int, width: int) -> None:
    """One policy's process: a training step for every line that comes in, a line of JSON back."""
    import actcodec
    import torch
    from actcodec.policies import catalog
    from actcodec.study.models import ResNet

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = ResNet(width=width, depth=2, stages=4)
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
    policy = None
    if policy_name != WITHOUT:
        options: dict[str, Any] = {"backend": backend} if "backend" in catalog.policy_options(policy_name) else {}
        policy = catalog.policy(policy_name, **options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in sys.stdin:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        if policy is None:
            stats = None
            loss = criterion(model(images), labels)
        else:
            with actcodec.compress_activations(model, policy) as stats:
                loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        reply: dict[str, Any] = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - begin_cpu}
        reply["peak"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / _KIB_PER_MIB
        if stats is not None:
            reply |= {"activations": stats.bytes_original / _MIB, "kept": stats.bytes_compressed / _MIB}
        print(json.dumps(reply), flush=True)


class Worker:
    """The process of one policy."""

    def __init__(self, policy: str, arguments: argparse.Namespace) -> None:
        command = [sys.executable, __file__, "--serve", policy, "--backend", arguments.backend]
        command += ["--batch", str(arguments.batch), "--threads", str(arguments.threads)]
        command += ["--width", str(arguments.width)]
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(arguments.threads),
            "MALLOC_MMAP_THRESHOLD_": str(_MIB),
        }
        self.policy = policy
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.replies: list[dict[str, float]] = []

    def step(self) -> dict[str, float]:
        """Let it take one step and wait for its reply."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("step\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of policy {self.policy} ended with code {self._process.wait()}")
        reply: dict[str, float] = json.loads(line)
        return reply

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", default=",".join(POLICIES), help="names with commas between")
    parser.add_argument("--backend", default="native", help="of the codecs: native or torch")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=64, help="channels of the first stage; 64 is ResNet-18")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7, help="steps of each policy that count; the median is taken")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.backend, arguments.batch, arguments.threads, arguments.width)
        return
    workers = [Worker(policy, arguments) for policy in (WITHOUT, *arguments.policies.split(","))]
    for repeat in range(arguments.repeats + 1):
        for worker in workers:
            reply = worker.step()
            if repeat:  # the first step allocates memory and finds its kernels
                worker.replies.append(reply)
        print(f"round {repeat} of {arguments.repeats}", file=sys.stderr, flush=True)
    for worker in workers:
        worker.close()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    network = f"width {arguments.width}, batch {arguments.batch}, {arguments.threads} thread(s)"
    print(f"Backend {arguments.backend}, {network}, {arguments.repeats} rounds.", end=" ")
    print(f"Load of {os.cpu_count()} cores in the last 1, 5, 15 minutes: {load}.\n")
    print("| policy | step s | time | CPU time | activations MiB | kept MiB | ratio | peak MiB | peak |")
    print("|---|---|---|---|---|---|---|---|---|")
    plain = workers[0].replies
    for worker in workers:
        seconds = _median(worker.replies, "seconds")
        last = worker.replies[-1]
        kept = ["", "", ""]
        if "kept" in last:
            kept = [f"{last['activations']:.0f}", f"{last['kept']:.1f}", f"{last['activations'] / last['kept']:.2f}"]
        cells = [
            worker.policy,
            f"{seconds:.2f}",
            f"{seconds / _median(plain, 'seconds'):.2f}",
            f"{_median(worker.replies, 'cpu') / _median(plain, 'cpu'):.2f}",
            *kept,
            f"{last['peak']:.0f}",
            f"{last['peak'] / plain[-1]['peak']:.2f}",
        ]
        print(table_row(cells), flush=True)


def _median(replies: list[dict[str, float]], key: str) -> float:
    return statistics.median(reply[key] for reply in replies)


if __name__ == "__main__":
    main()
