"""Compare gradients of policies with the exact gradient while models train: after 0, 8 and 200 steps, a model of each family.

    python benchmarks/gradients_over_time.py

Models, batches and policies are those of benchmarks/families.py, here only the recommended policies,
the papers' and common ones. A model is trained without compression; the gradient is that of one batch. Writes every row
to docs/evidence/gradients_over_time.csv and the cosines between the marks of docs/user/policies.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import named
from actcodec.study.families import rows_of
from actcodec.study.zoo import ZOO
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from marked_table import measure

PAGE, MARKS = Path("docs", "user", "policies.md"), Marks("gradients-over-time")
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
    """A row for each policy, and in each cell the cosines after 0, 8 and 200 steps."""
    every, cosines = [], {named(spec): dict.fromkeys(MODELS, "") for spec in POLICIES}
    for model in MODELS:
        early, late = ({row.policy: row for row in rows_of(ZOO[model], POLICIES, steps)} for steps in STEPS)
        for policy, row in early.items():
            if policy not in cosines:
                continue
            seen = {0: row.first, STEPS[0]: row.later, STEPS[1]: late[policy].later}
            cosines[policy][model] = " / ".join(f"{one.cosine:.3f}" for one in seen.values())
            for steps, one in seen.items():
                ratio = f"{(late[policy] if steps == STEPS[1] else row).ratio_of_everything:.2f}" if steps else ""
                worst = (one.worst_layer, f"{one.worst_cosine:.4f}")
                every.append(
                    (row.family, model, policy, str(steps), f"{one.cosine:.4f}", f"{one.norm_ratio:.3f}", *worst, ratio)
                )
            print(model, policy, cosines[policy][model], file=sys.stderr, flush=True)
    head = ("family", "model", "policy", "steps", "cosine", "norm", "worst layer", "its cosine", "of everything")
    write_whole(FILE, Table(head, every).csv())
    return Table(("policy", *MODELS), [(f"`{policy}`", *cells.values()) for policy, cells in cosines.items()])


if __name__ == "__main__":
    measure(__doc__.splitlines()[0], table, PAGE, MARKS)
