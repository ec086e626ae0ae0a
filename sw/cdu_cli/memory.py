"""``cdu memory``: how much memory a training step will take, without weights and data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from cdu_tools.errors import UserError
from cdu_tools.near_names import unknown

from cdu_cli.options import JsonOption, distinct, write_json
from cdu_cli.progress import ProgressBar

if TYPE_CHECKING:
    from actcodec.study.memory import Predicted
    from actcodec.study.memory_subject import Subject

_GIB = 1 << 30
#: Memory for which the largest batch is looked for, and what no machine has.
_GPUS, _MOST = [24.0, 80.0], 1e6


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu memory examples/memory_me.py --dtype bf16 --optimizer adamw --batch 2")(memory)


def memory(
    model: Annotated[
        str,
        typer.Argument(
            help="Python file that defines `model`, `step` and perhaps `batch(count)`, or the name of a model of the zoo."
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="none, checkpoint (around each block), compiled (model and loss in one graph), compiled-blocks (each block in "
            "a graph), compiled-FORMAT (actcodec.compiled with a format), or a policy by name; may be given several times. "
            "Default: none, and checkpoint of a model with blocks."
        ),
    ] = None,
    budget: Annotated[float, typer.Option(help="torch's activation_memory_budget, for compiled and compiled-blocks.")] = 1.0,
    batch: Annotated[int | None, typer.Option(help="Samples in the batch. Default: the model's own, or 1.", min=1)] = None,
    dtype: Annotated[str, typer.Option(help="Format of parameters and data: fp32, bf16, fp16.")] = "fp32",
    optimizer: Annotated[
        str, typer.Option(help="Whose states and update count: none, sgd, momentum, adamw (fused), adamw-foreach.")
    ] = "none",
    family: Annotated[str, typer.Option(help="Kind of the network, for the measured ratio of a policy: {families}.")] = "",
    gigabytes: Annotated[
        list[float] | None,
        typer.Option("--gb", help="Memory, in 2^30 bytes, to find the largest batch for. Default: 24 and 80."),
    ] = None,
    on_cpu: Annotated[bool, typer.Option("--cpu", help="Count the workspace that convolutions take on a CPU.")] = False,
    json_file: JsonOption = None,
) -> None:
    """Predict peak and kept bytes of a training step, where the peak is, and the largest batch, on tensors without values."""
    from actcodec.study.memory import CHECKPOINT, NO_BLOCKS, NONE, OPTIMIZERS, blocks, check_policy, predict
    from actcodec.study.memory_subject import DTYPES

    given = distinct("--policy", policy)
    for name, known, option in ((dtype, DTYPES, "--dtype"), (optimizer, OPTIMIZERS, "--optimizer")):
        if name not in known:
            raise UserError(unknown(option, name, known))
    if not 0 <= budget <= 1:
        raise UserError(f"--budget {budget:g} is not allowed: use 0 to 1")
    sizes = gigabytes or _GPUS
    for size in sizes:
        if not 0 < size < _MOST:
            raise UserError(f"--gb {size:g} is not allowed: use more than 0 and less than {_MOST:g}")
    subject = _subject(model, family, DTYPES[dtype])
    without_blocks = not given and not blocks(subject.model)
    policies = given or ([NONE] if without_blocks else [NONE, CHECKPOINT])
    for name in policies:
        check_policy(name, subject.family, budget)
    rows = []
    with ProgressBar() as shown:
        shown.begin("policies", len(policies))
        for name in policies:
            rows.append(
                _row(partial(predict, subject, name, optimizer=optimizer, budget=budget, on_cpu=on_cpu), subject, batch, sizes)
            )
            shown.step()
    for row in rows:
        typer.echo(_words(row))
    if without_blocks:
        typer.echo(f"{CHECKPOINT}: {NO_BLOCKS}")
    write_json(json_file, {"model": subject.name, "dtype": dtype, "optimizer": optimizer, "budget": budget, "policies": rows})


def _subject(model: str, family: str, dtype: Any) -> Subject:
    from actcodec.study.foreign import FAMILIES
    from actcodec.study.memory_subject import of_script, of_zoo
    from cdu_zoo import ZOO

    if family and family not in FAMILIES:
        raise UserError(unknown("family", family, FAMILIES))
    if model in ZOO:
        return of_zoo(ZOO[model], dtype)
    if Path(model).suffix != ".py":
        some = f"give a Python file, or the name of a model of the zoo, as in {', '.join(list(ZOO)[:3])}"
        raise UserError(unknown("model", model, ZOO, some))
    return of_script(Path(model), family, dtype)


def _row(found: Callable[..., Predicted], subject: Subject, batch: int | None, gigabytes: list[float]) -> dict[str, Any]:
    """Return the findings of one policy as plain values; ``found(count=...)`` predicts."""
    from actcodec.study.largest import largest

    first = found(count=batch)
    row = first.to_data() | {"batch": subject.count(batch)}
    if subject.varies:
        known = {row["batch"]: first.peak}

        def peak(count: int) -> int:
            if count not in known:
                known[count] = found(count=count).peak
            return known[count]

        row["largest"] = {f"{size:g}": largest(peak, int(size * _GIB), row["batch"]) for size in gigabytes}
    return row


def _words(row: dict[str, Any]) -> str:
    place = row["place"]
    where = " of ".join(part for part in (place["operation"], place["module"]) if part)
    peak, state, kept = (f"{row[name] / _GIB:.3f}" for name in ("peak", "state", "kept"))
    text = (
        f"{row['policy']}: peak {peak} GiB with a batch of {row['batch']}, {state} of it there before the step; {kept} kept "
        f"for the backward; the peak is in phase {place['phase']}, in {where}"
    )
    fits = [f"{count} in {size} GB" for size, count in row.get("largest", {}).items()]
    return f"{text}; largest batch {', '.join(fits)}" if fits else text
