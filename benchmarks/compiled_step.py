"""Peak, time and gradient of a training step on five networks: eager, torch.compile with torch's own means, and this project.

    python benchmarks/compiled_step.py
    python benchmarks/compiled_step.py --networks GPT U-Net --autocast
    python benchmarks/compiled_step.py --networks GPT --means eager inductor "FP8 pass" --rounds 3 --no-page
    python benchmarks/compiled_step.py --budgets 10

The networks are those of benchmarks/compiled_networks.py, the means those of benchmarks/compiled_means.py. A step is forward,
loss and backward on the CPU with one thread; gradients are tensors of zeros before it. Every means has a process of its own
with equal weights; all of them take a step in turn, so that the load of the machine hurts all alike. Columns:

peak
    MiB of tensors at the worst moment of a step beyond those in use before it, by the events of torch's allocator
    (:mod:`actcodec.saved.allocations`): exact, and the same in every run. Memory of numpy is not seen;
of eager
    the same, as a part of the eager step's peak;
kept
    MiB of tensors between forward and backward;
resident
    MiB that the resident set grew by at most in a step, memory of libraries included;
time
    processor time of a step as a multiple of that of the eager step in the same round; the median over the rounds;
cosine
    of the gradient with the eager step's;
loss
    whether the loss equals that of the uncompressed step in every bit: of plain ``torch.compile`` for compiled models;
first step, wall, of inductor's
    processor time that the first step of a compiled model took more than later ones, compilers included, with an empty cache
    of compiled code; the same by the clock; and the processor time as a multiple of plain ``torch.compile``'s.

The rows of the networks, the precision and the kind of processor (its vectors) that were measured replace those in
``docs/evidence/compiled_step.json``; the tables of ``docs/evidence/compiled_step.md`` are written from that file.

``--budgets N`` asks ``actcodec.compiled`` for N budgets on each network instead, from its floor to the peak of
a step that codes nothing, and writes budgets and measured peaks into ``docs/evidence/compiled_budgets.csv`` and the same page.
"""

from __future__ import annotations

import argparse

import compiled_budgets
from compiled_means import EAGER, MEANS
from compiled_measure import BF16, FLOAT32, measure
from compiled_networks import NETWORKS
from compiled_page import PAGE, ROWS, read_rows, table, write_page, write_rows
from torch_means import PLAIN


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS), metavar="NETWORK")
    parser.add_argument("--means", nargs="+", choices=MEANS, default=list(MEANS), metavar="MEANS")
    parser.add_argument("--autocast", action="store_true", help="run forward passes under bfloat16 autocast")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each means that count")
    parser.add_argument("--no-page", action="store_true", help="print the tables, and write nothing")
    parser.add_argument("--budgets", type=int, metavar="N", help="measure so many budgets on each network instead, 2 or more")
    arguments = parser.parse_args()
    means = {name: one for name, one in MEANS.items() if name in {EAGER, PLAIN, *arguments.means}}
    for network in arguments.networks:
        if arguments.budgets is not None:
            asked = compiled_budgets.sweep(network, arguments.budgets, arguments.autocast, arguments.rounds)
            found = compiled_budgets.table(asked)
        else:
            rows = measure(network, means, arguments.autocast, arguments.rounds)
            found = table(rows)
        if arguments.no_page:
            print(f"{network}, {BF16 if arguments.autocast else FLOAT32}\n\n{found.markdown()}\n", flush=True)
            continue
        if arguments.budgets is not None:
            compiled_budgets.write(asked)
        else:
            write_rows(ROWS, rows)
        write_page(PAGE, read_rows(ROWS), compiled_budgets.lowest(compiled_budgets.read_budgets()))


if __name__ == "__main__":
    main()
