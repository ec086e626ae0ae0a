"""Gradients of foreign models under every policy, and the policy that this recommends for each kind of network.

    python benchmarks/families.py
    python benchmarks/families.py --models timm.test_resnet torch.LSTM
    python benchmarks/families.py --models timm.test_vit --policies transformer nvfp4
    python benchmarks/families.py --policies transformer "transformer bits=5"

Models have random weights and take batches of real images and text (:mod:`actcodec.study.zoo`). Each policy is tried on one
batch with these weights and after 32 steps of training without compression. Prints a markdown table with a row for each family
and one with a row for each model and policy:

cosine, norm
    of the whole gradient with the exact one, and of their norms, before and after training;
worst layer, its cosine
    of the pass in which the whole gradient is farther off;
ratio, of everything
    of activations, and of all that autograd keeps but weights.

Without ``--models`` it writes sw/actcodec/policies/measured.json too, from which `cdu list` and the front page take what they
say; with ``--policies`` of these alone, the others keep what they have there. What is measured of a model is kept in
build/families, so that an interrupted run goes on where it stopped, and another one measures nothing but policies that are new.
On one core of 2026 all models take about half an hour.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import has_kernels, named, recommended
from actcodec.study.families import BITS, POLICIES, Row, on_family, rows_of
from actcodec.study.likeness import Likeness
from actcodec.study.zoo import FAMILIES, ZOO
from cdu_tools.files import write_whole
from digest import Table

ROOT = Path(__file__).parent.parent
DATA = ROOT / "sw" / "actcodec" / "policies" / "measured.json"
KEPT = ROOT / "build" / "families"
#: What everybody has: storage in fewer bits.
BASELINES = ("bf16", "int8-rows")
SPECS = {named(spec): spec for spec in POLICIES}


def measured_of(name: str, specs: dict[str, CodecSpec] = SPECS) -> list[Row]:
    """The rows of a model in the order of the policies, from the last run where that has them."""
    file = KEPT / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    rows = {row["policy"]: Row(**row | {when: Likeness(**row[when]) for when in ("first", "later")}) for row in before}
    missing = [spec for policy, spec in specs.items() if policy not in rows]
    if missing:
        print(name, file=sys.stderr, flush=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        rows |= {row.policy: row for row in rows_of(ZOO[name], missing)}
        write_whole(file, json.dumps([asdict(row) for row in rows.values()]))
    return [rows[policy] for policy in (*specs, *BITS) if policy in rows]


def models_table(rows: list[Row]) -> Table:
    """A row for each model and policy."""
    header = ("family", "model", "policy", "cosine", "later", "norm", "later norm", "worst layer", "its cosine", "ratio")
    return Table(
        (*header, "of everything"),
        tuple(
            (
                *(row.family, row.model, row.policy),
                *(f"{number:.4f}" for number in (row.first.cosine, row.later.cosine)),
                *(f"{number:.3f}" for number in (row.first.norm_ratio, row.later.norm_ratio)),
                *(row.worse.worst_layer, f"{row.worse.worst_cosine:.4f}"),
                *(f"{number:.2f}" for number in (row.ratio, row.ratio_of_everything)),
            )
            for row in rows
        ),
    )


def families_table(rows: list[Row]) -> Table:
    """A row for each family: the densest of all good policies and of those with kernels, plain storage, and two bits' harm."""
    found = []
    for family in FAMILIES:
        cells = [family]
        for one in (recommended(family), recommended(family, has_kernels)):
            its = one.families[family]
            cells += [f"`{one.text}`", f"{its.ratio:.1f}", f"{its.cosine:.4f}"]
        cells.insert(1, str(its.models))
        for name in BASELINES:
            plain = on_family(select(rows, family, name))
            cells.append(f"{plain.ratio:.1f}, {plain.cosine:.4f}")
        found.append((*cells, *(f"{on_family(select(rows, family, bits)).cosine:.2f}" for bits in BITS)))
    header = ("network", "models", "densest", "ratio", "cosine", "with kernels", "its ratio", "its cosine")
    return Table((*header, *BASELINES, *BITS), tuple(found))


def select(rows: list[Row], family: str, policy: str) -> list[Row]:
    """A policy's rows of one family."""
    return [row for row in rows if (row.family, row.policy) == (family, policy)]


def data(rows: list[Row], specs: dict[str, CodecSpec]) -> str:
    """What is kept for :mod:`actcodec.policies.recommended`: JSON, a line for each policy, the old one of others."""
    before = {named(CodecSpec(one["policy"], one["options"])): one for one in json.loads(DATA.read_text(encoding="utf-8"))}
    lines = []
    for policy, spec in SPECS.items():
        if policy not in specs:
            lines.append(json.dumps(before[policy]))
            continue
        its = {family: on_family(select(rows, family, policy)) for family in FAMILIES}
        found = {
            family: asdict(one) | {"ratio": round(one.ratio, 3), "cosine": round(one.cosine, 6)} for family, one in its.items()
        }
        lines.append(json.dumps({"policy": spec.name, "options": spec.options, "families": found}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    """See the module's documentation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=ZOO, metavar="NAME", help="of the zoo, all unless given")
    of_all = {name: CodecSpec(name) for name in POLICY_NAMES} | SPECS
    parser.add_argument("--policies", nargs="+", choices=of_all, metavar="NAME", help="these alone")
    arguments = parser.parse_args()
    specs = {name: of_all[name] for name in arguments.policies or SPECS}
    if arguments.models is None and not SPECS.keys() >= specs.keys():
        parser.error(f"without --models only policies are measured that may be recommended: {', '.join(SPECS)}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = [row for name in arguments.models or ZOO for row in measured_of(name, specs)]
    if arguments.models is None:
        write_whole(DATA, data(rows, specs))
        if specs == SPECS:
            print(f"{families_table(rows).markdown()}\n")
    print(models_table([row for row in rows if row.policy in specs or (row.policy in BITS and specs == SPECS)]).markdown())


if __name__ == "__main__":
    main()
