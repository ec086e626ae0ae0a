"""Compare gradients of policies with the exact gradient while models train: after 0, 8 and 200 steps, a model of each family.

    python benchmarks/gradients_over_time.py

Models, batches and policies are those of benchmarks/families.py, here only the recommended policies,
the papers' and common ones. A model is trained without compression; the gradient is that of one batch. Writes
docs/evidence/gradients_over_time.csv.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import named
from actcodec.study.families import rows_of
from cdu_tools.files import write_whole
from cdu_tools.report import Table
from cdu_zoo import ZOO

FILE = Path("docs", "evidence", "gradients_over_time.csv")
MODELS = (
    *("torchvision.resnet18", "torchvision.mobilenet_v3_small", "timm.test_convnext", "timm.test_vit", "transformers.gpt2"),
    *("torch.UNet_batch_norm", "torch.LSTM"),
)
POLICIES = (
    *(CodecSpec(name) for name in ("bf16", "int8-rows", "sfpr", "jpeg-act", "jpeg-gmc")),
    *(CodecSpec("blpa-coded", {"bits": 6}), CodecSpec("actnn-L2"), CodecSpec("division"), CodecSpec("mxint8")),
    *(CodecSpec("nvfp4"), CodecSpec("transformer"), CodecSpec("transformer-nvfp4")),
)
#: Steps of training; the first row of each model is before any.
STEPS = (8, 200)


def table() -> Table:
    """Return a row for each model, policy and number of steps."""
    every, policies = [], {named(spec) for spec in POLICIES}
    for model in MODELS:
        early, late = ({row.policy: row for row in rows_of(ZOO[model], POLICIES, steps)} for steps in STEPS)
        for policy, row in early.items():
            if policy not in policies:
                continue
            for steps, one in {0: row.first, STEPS[0]: row.later, STEPS[1]: late[policy].later}.items():
                ratio = f"{(late[policy] if steps == STEPS[1] else row).ratio_of_everything:.2f}" if steps else ""
                worst = (one.worst_layer, f"{one.worst_cosine:.4f}")
                every.append(
                    (row.family, model, policy, str(steps), f"{one.cosine:.4f}", f"{one.norm_ratio:.3f}", *worst, ratio)
                )
                print(model, policy, steps, f"{one.cosine:.3f}", file=sys.stderr, flush=True)
    return Table(("family", "model", "policy", "steps", "cosine", "norm", "worst layer", "its cosine", "of everything"), every)


def main() -> None:
    """Measure on one thread and write the table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    write_whole(FILE, table().csv())


if __name__ == "__main__":
    main()
