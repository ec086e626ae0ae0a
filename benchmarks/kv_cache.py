"""Measure a compressed KV cache in a small GPT: bytes kept, and perplexity of text that it has not seen.

    python benchmarks/kv_cache.py

A GPT-2 of 2 layers and 0.4 million parameters learns the letters of Python's own manual (``pydoc_data.topics``), all but the
last twentieth of it, which it reads with a cache. Writes the table of docs/user/kv_cache.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from actcodec.study.models import library
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from torch import Tensor
from torch.nn import functional as F

_PAGE, _MARKS = Path("docs", "user", "kv_cache.md"), Marks("kv-cache")
#: Letters are ASCII.
_LETTERS = 128
_CONTEXT = 128
_SHAPE = {"n_layer": 2, "n_head": 4, "n_embd": 128}
_BATCH, _RATE = 16, 1e-3
#: Part of the text that is not learnt, one in so many, and pieces of it that are read.
_HELD_OUT, _PIECES = 20, 64
#: Tokens of a call with a cache.
_STEP = 4
#: Tokens that are compressed together and tokens that are kept as they are.
_GROUP, _RECENT = 32, 0


@dataclass(frozen=True)
class Way:
    """A cache: codecs of keys and of values, and what shares their blocks."""

    keys: str
    values: str
    key_blocks: str = "channel"
    value_blocks: str = "token"


WAYS = (
    Way("bypass", "bypass"),
    *(Way(name, name) for name in ("mxint8", "mxfp8-e4m3", "mxfp6-e2m3", "nvfp4", "mxfp4")),
    Way("mxint8", "mxfp4"),
    Way("mxfp4", "mxint8"),
    Way("mxfp4", "mxfp4", "token", "token"),
    Way("mxfp4", "mxfp4", "channel", "channel"),
    Way("mxfp4", "mxfp4", "token", "channel"),
)


def text() -> Tensor:
    """The manual's letters, int64."""
    from pydoc_data.topics import topics

    letters = "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")
    return torch.tensor(list(letters))


def trained(letters: Tensor, steps: int) -> Any:
    """A model after so many steps, and its loss on the way to the error output."""
    models = library.transformers()
    torch.manual_seed(0)
    config = models.GPT2Config(vocab_size=_LETTERS, n_positions=_CONTEXT, **_SHAPE, bos_token_id=None, eos_token_id=None)
    model = models.GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
    order = torch.Generator().manual_seed(0)
    for step in range(steps):
        starts = torch.randint(0, len(letters) - _CONTEXT, (_BATCH, 1), generator=order)
        pieces = letters[starts + torch.arange(_CONTEXT)]
        loss = model(pieces, labels=pieces).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", file=sys.stderr, flush=True)
    return model.eval()


@torch.no_grad()
def perplexity(model: Any, pieces: Tensor, cache: Any) -> float:
    """Return the perplexity of pieces (count, tokens), a few tokens at a time."""
    total = 0.0
    for start in range(0, pieces.shape[1] - 1, _STEP):
        stop = min(start + _STEP, pieces.shape[1] - 1)
        logits = model(pieces[:, start:stop], past_key_values=cache).logits
        total += F.cross_entropy(logits.flatten(0, 1), pieces[:, start + 1 : stop + 1].flatten(), reduction="sum").item()
    return float(torch.tensor(total / (len(pieces) * (pieces.shape[1] - 1))).exp())


def measured(model: Any, pieces: Tensor, cache: Callable[[Way], Any]) -> Table:
    """A row for each way."""
    rows, exact = [], 0.0
    for way in WAYS:
        used = cache(way)
        found = perplexity(model, pieces, used)
        exact = exact or found
        rows.append(
            (
                f"`{way.keys}`",
                f"`{way.values}`",
                way.key_blocks,
                way.value_blocks,
                f"{used.ratio:.2f}",
                f"{used.packed_ratio:.2f}",
                f"{found:.4f}",
                f"{100 * (found / exact - 1):+.2f} %",
            )
        )
        print(rows[-1], file=sys.stderr, flush=True)
    header = ("keys", "values", "keys share by", "values share by", "ratio", "of what is compressed", "perplexity", "change")
    return Table(header, rows)


def main() -> None:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500, help="of training")
    parser.add_argument("--no-page", action="store_true", help="print the table, and write nothing")
    arguments = parser.parse_args()
    library.transformers()
    from actcodec.integrations.kv_cache import CompressedCache

    letters = text()
    border = len(letters) - len(letters) // _HELD_OUT
    model = trained(letters[:border], arguments.steps)
    starts = torch.linspace(border, len(letters) - _CONTEXT, _PIECES).long()[:, None]
    pieces = letters[starts + torch.arange(_CONTEXT)]
    table = measured(
        model,
        pieces,
        lambda way: CompressedCache(
            way.keys, way.values, key_blocks=way.key_blocks, value_blocks=way.value_blocks, group=_GROUP, recent=_RECENT
        ),
    )
    if arguments.no_page:
        print(table.markdown())
        return
    _MARKS.put(_PAGE, f"\n\n{table.markdown()}\n\n")


if __name__ == "__main__":
    main()
