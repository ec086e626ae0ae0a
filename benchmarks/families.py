"""Gradients of foreign models under every policy, and the policy that this recommends for each kind of network.

    python benchmarks/families.py --jobs 16
    python benchmarks/families.py --models timm.test_resnet torch.LSTM --seeds 1
    python benchmarks/families.py --models timm.test_vit --policies transformer nvfp4
    python benchmarks/families.py --policies transformer "transformer bits=5"

Models have random weights, by three seeds, and take batches of real images and text (:mod:`cdu_zoo`). Each policy is
tried on one batch with these weights and after 32 steps of training without compression. Seed 0 is for all policies; the others
are for those that are good for the family so far. Prints a markdown table of plain storage and of what two bits do, with
a row for each family, and one with a row for each model and policy:

cosine, later, norm
    of the whole gradient with the exact one, before and after training, and of their norms: of each the farthest off of all
    seeds;
worst layer, its cosine
    of the pass in which the whole gradient is farthest off;
ratio, of everything
    of activations, and of all that autograd keeps but weights: geometric means over the seeds.

Without ``--models`` it writes sw/actcodec/policies/measured.json too, from which `cdu list`, `benchmarks/front_page.py` and
`benchmarks/results.py` take what they say; with ``--policies`` of these alone, the others keep what they have there. What is
measured of a model with a seed is kept in build/families, so that an interrupted run goes on where it stopped, and another one
measures nothing but policies that are new. ``--jobs`` are processes, each of which works on one model with one seed at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean

import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import named
from actcodec.study.families import BITS, POLICIES, FamilyRow, on_family, rows_of
from actcodec.study.foreign import FAMILIES
from actcodec.study.gradient_similarity import Likeness
from cdu_tools.files import write_whole
from cdu_tools.parallel import processes
from cdu_zoo import ZOO
from digest import Table

ROOT = Path(__file__).parent.parent
DATA = ROOT / "sw" / "actcodec" / "policies" / "measured.json"
KEPT = ROOT / "build" / "families"
#: Common baselines: storage in fewer bits.
BASELINES = ("bf16", "int8-rows")
SPECS = {named(spec): spec for spec in POLICIES}
SEEDS = 3

#: A model, a seed, and names of policies.
Task = tuple[str, int, tuple[str, ...]]


def kept(model: str, seed: int) -> list[FamilyRow]:
    """Return the rows that were kept of a model with a seed."""
    file = KEPT / f"{model}-{seed}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return [FamilyRow(**row | {when: Likeness(**row[when]) for when in ("first", "later")}) for row in before]


def measure(task: Task) -> str:
    """Measure a model with a seed under those policies of which nothing is known, and keep it; says what it was."""
    model, seed, policies = task
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    before = kept(model, seed)
    known = {row.policy for row in before}
    missing = [spec_of(policy) for policy in policies if policy not in known]
    if missing:
        found = {row.policy: row for row in (*before, *rows_of(ZOO[model], missing, seed=seed))}
        KEPT.mkdir(parents=True, exist_ok=True)
        write_whole(KEPT / f"{model}-{seed}.json", json.dumps([asdict(row) for row in found.values()]))
    return f"{model} seed {seed}: {len(missing)} policies"


def spec_of(policy: str) -> CodecSpec:
    """A policy by its name and options."""
    return SPECS[policy] if policy in SPECS else CodecSpec(policy)


def run(tasks: Sequence[Task], jobs: int) -> None:
    """Do all of it, in so many processes; the first error ends it."""
    if jobs == 1:
        for task in tasks:
            print(measure(task), file=sys.stderr, flush=True)
        return
    with processes(jobs) as pool:
        futures = [pool.submit(measure, task) for task in tasks]
        for done in as_completed(futures):
            print(done.result(), file=sys.stderr, flush=True)


def measured(models: Sequence[str], policies: Sequence[str], seeds: int, jobs: int) -> list[FamilyRow]:
    """The rows of models in the order of the policies: seed 0 of all, the other seeds of what is good for a family so far."""
    run([(model, 0, tuple(policies)) for model in models], jobs)
    rows = [row for model in models for row in kept(model, 0) if row.policy in (*policies, *BITS)]
    if seeds > 1:
        good = {family: tuple(name for name in policies if _good(rows, family, name)) for family in FAMILIES}
        run([(model, seed, good[ZOO[model].family]) for model in models for seed in range(1, seeds)], jobs)
        rows += [
            row
            for model in models
            for seed in range(1, seeds)
            for row in kept(model, seed)
            if row.policy in good[ZOO[model].family]
        ]
    order = {name: place for place, name in enumerate((*policies, *BITS))}
    places = {name: place for place, name in enumerate(models)}
    return sorted(rows, key=lambda row: (places[row.model], order[row.policy], row.seed))


def _good(rows: Sequence[FamilyRow], family: str, policy: str) -> bool:
    its = select(rows, family, policy)
    return bool(its) and on_family(its).good


def models_table(rows: Sequence[FamilyRow]) -> Table:
    """A row for each model and policy."""
    header = ("family", "model", "policy", "seeds", "cosine", "later", "norm", "later norm", "worst layer", "its cosine")
    return Table((*header, "ratio", "of everything"), tuple(_cells(rows)))


def _cells(rows: Sequence[FamilyRow]) -> Iterator[tuple[str, ...]]:
    together: dict[tuple[str, str], list[FamilyRow]] = {}
    for row in rows:
        together.setdefault((row.model, row.policy), []).append(row)
    for its in together.values():
        worst = min(its, key=lambda row: row.worse.cosine)
        passes = [[getattr(row, when) for row in its] for when in ("first", "later")]
        yield (
            *(worst.family, worst.model, worst.policy, str(len(its))),
            *(f"{min(one.cosine for one in found):.4f}" for found in passes),
            *(f"{max((one.norm_ratio for one in found), key=lambda norm: abs(norm - 1)):.3f}" for found in passes),
            *(worst.worse.worst_layer, f"{worst.worse.worst_cosine:.4f}"),
            *(f"{geometric_mean(getattr(row, what) for row in its):.2f}" for what in ("ratio", "ratio_of_everything")),
        )


def harm_table(rows: Sequence[FamilyRow]) -> Table:
    """A row for each family: plain storage, and what two bits do."""
    found = []
    for family in FAMILIES:
        plain = [on_family(select(rows, family, name)) for name in BASELINES]
        harm = [f"{on_family(select(rows, family, bits)).cosine:.2f}" for bits in BITS]
        found.append((family, *(f"{one.ratio:.1f}, {one.cosine:.4f}" for one in plain), *harm))
    return Table(("network", *BASELINES, *BITS), tuple(found))


def select(rows: Sequence[FamilyRow], family: str, policy: str) -> list[FamilyRow]:
    """A policy's rows of one family."""
    return [row for row in rows if (row.family, row.policy) == (family, policy)]


def data(rows: Sequence[FamilyRow], policies: Sequence[str]) -> str:
    """Return the data of :mod:`actcodec.policies.recommended`: JSON, a line for each policy, unchanged if not measured."""
    before = {named(CodecSpec(one["policy"], one["options"])): one for one in json.loads(DATA.read_text(encoding="utf-8"))}
    lines = []
    for policy, spec in SPECS.items():
        if policy not in policies:
            lines.append(json.dumps(before[policy]))
            continue
        its = {family: on_family(select(rows, family, policy)) for family in FAMILIES}
        found = {
            family: asdict(one)
            | {"ratio": round(one.ratio, 3), "cosine": round(one.cosine, 6)}
            | {"exceptions": {model: round(cosine, 6) for model, cosine in one.exceptions.items()}}
            for family, one in its.items()
        }
        lines.append(json.dumps({"policy": spec.name, "options": spec.options, "families": found}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=ZOO, metavar="NAME", help="of the zoo, all unless given")
    every = dict.fromkeys((*SPECS, *POLICY_NAMES))
    parser.add_argument("--policies", nargs="+", choices=every, metavar="NAME", help="these alone")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of weights, from 0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    policies = arguments.policies or list(SPECS)
    if arguments.models is None and not SPECS.keys() >= set(policies):
        parser.error(f"without --models only policies are measured that may be recommended: {', '.join(SPECS)}")
    rows = measured(arguments.models or list(ZOO), policies, arguments.seeds, arguments.jobs)
    if arguments.models is None:
        write_whole(DATA, data(rows, policies))
        if policies == list(SPECS):
            print(f"{harm_table(rows).markdown()}\n")
    print(models_table([row for row in rows if row.policy in policies or policies == list(SPECS)]).markdown())


if __name__ == "__main__":
    main()
