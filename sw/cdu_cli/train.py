"""``cdu train``: what compressed activations do to the training of a real network."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from cdu_spec.affine import MAX_SEED
from cdu_spec.dqt import DQT_HELP
from cdu_tools.errors import MissingToolError, UserError
from cdu_tools.files import write_whole

from cdu_cli.options import (
    BackendOption,
    BitsOption,
    CheckOption,
    DataOption,
    DatasetOption,
    DepthOption,
    DprOption,
    JsonOption,
    LimitOption,
    ModelOption,
    OutputOption,
    RangeOption,
    RatioOption,
    SOption,
    ThreadsOption,
    WidthOption,
    codec_backend,
    output_directory,
    whole,
    write_json,
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: cdu train --codec none,jpeg-act,sfpr --seeds 3 -o build/train")(train)


def train(
    output: OutputOption,
    model: ModelOption = "resnet",
    dataset: DatasetOption = None,
    data: DataOption = None,
    limit: LimitOption = None,
    codec: Annotated[
        str,
        typer.Option(
            help="Codecs with commas between: none (always run), jpeg-act, jpeg-base, sfpr, sfpr+zvc, division, "
            "division-channel, actnn, brc, division-float, blpa, blpa-coded, gist, cdma, vdnn, autoquant, autoquantz, "
            "autocusz, autojpeg, autojpegz, gridquantz, ActNN's levels actnn-L0 to actnn-L5, auto, and policy files (.toml, "
            ".json)."
        ),
    ] = "none,jpeg-act,sfpr",
    dqt: Annotated[
        str | None,
        typer.Option(help=f"Quantisation table of jpeg-act and jpeg-base: optLH, {DQT_HELP}."),
    ] = None,
    scale: SOption = None,
    bits: BitsOption = None,
    range_of: RangeOption = None,
    dpr: DprOption = None,
    block: Annotated[int | None, typer.Option(help="Side of a cell of division-float (8).")] = None,
    parts: Annotated[
        str | None, typer.Option(help="What division-float keeps: both (default), or for comparison low, high, plain.")
    ] = None,
    ratio: RatioOption = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training images.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of one run, instead of --epochs.")] = None,
    batch: Annotated[int, typer.Option(help="Images per step.")] = 64,
    width: WidthOption = None,
    depth: DepthOption = None,
    learning_rate: Annotated[float | None, typer.Option("--lr", help="Learning rate at the start.")] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of runs per codec, each with its own weights and order of images.", min=1)
    ] = 3,
    seed: Annotated[int, typer.Option(help="First seed.", min=0, max=MAX_SEED)] = 0,
    backend: BackendOption = "torch",
    check: CheckOption = False,
    device: Annotated[str, typer.Option(help="Torch device: cpu, cuda, cuda:1 ...")] = "cpu",
    threads: ThreadsOption = 1,
    json_file: JsonOption = None,
) -> None:
    """Train a network with and without compressed activations and write report.md, curves.png and results.json."""
    if backend == "cocotb":
        raise UserError("backend 'cocotb' is not available in cdu train: use rtl, or cdu verify --training")
    if epochs is not None and steps is not None:
        raise UserError("--epochs and --steps exclude each other: give one of them")
    if seed + seeds - 1 > MAX_SEED:
        raise UserError(f"--seed {seed} with --seeds {seeds} is not allowed: use seeds up to {MAX_SEED}")

    import torch
    from actcodec.study import data as datasets
    from actcodec.study import experiment, report
    from actcodec.training import AutoPolicy, save_policy
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    recipe = experiment.Recipe.usual(
        model, width=width, depth=depth, epochs=epochs, steps=steps, batch=batch, learning_rate=learning_rate
    )
    names = [name.strip() for name in codec.split(",")]
    given = {
        "dqt": dqt,
        "S": scale,
        "bits": whole(bits),
        "range": range_of,
        "dpr": dpr,
        "block": block,
        "parts": parts,
        "ratio": ratio,
    }
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    computed_by = codec_backend(backend, check)
    options |= {"backend": computed_by} if backend != "torch" else {}
    policies = experiment.codec_policies(names, **options)
    images = datasets.load(experiment.network(model).dataset if dataset is None else dataset, data, limit)
    images = images.to(torch_device(device))
    experiment.build_model(recipe, images)
    total = experiment.total_steps(recipe, images)
    experiment.steps_per_epoch(recipe, images)
    folder = output_directory(output)
    torch.set_num_threads(threads)

    runs = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=total * seeds * len(policies))
        for number in range(seed, seed + seeds):
            for name, codec_policy in policies.items():
                progress.update(bar, description=f"{name}, seed {number}")
                runs.append(experiment.train(recipe, images, name, codec_policy, number, on_step=lambda: progress.advance(bar)))
    results = {"model": model, "dataset": images.name, "runs": [run.to_dict(backend) for run in runs]}
    command = shlex.join(["cdu", *sys.argv[1:]])
    picture = report.curves(f"{model} on {images.name}, {total} steps of {batch} images, {seeds} seed(s)", runs)
    write_whole(folder / "curves.png", picture)
    write_whole(folder / "results.json", json.dumps(results, indent=2) + "\n")
    write_whole(folder / "report.md", report.markdown(command, recipe, images, runs))
    for name, codec_policy in policies.items():
        if isinstance(codec_policy, AutoPolicy):
            save_policy(codec_policy.decided(), folder / f"{Path(name).stem}.policy.json")
    write_json(json_file, results)
    for row in experiment.summarise(runs):
        print(f"{row.codec:10} {runs[0].score_name} {row.score:.2f} ({row.difference:+.2f})  ratio {row.ratio:.2f}")
    if check:
        print(f"equal to the golden model's: {computed_by}", file=sys.stderr)
    print(f"written: {folder / 'report.md'}, curves.png, results.json", file=sys.stderr)


def torch_device(name: str) -> Any:
    """The torch device of a name; one sentence when there is none, or one that cannot compute."""
    import torch

    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError, AttributeError):
        raise MissingToolError(f"device {name!r} is not here: use cpu, or install a torch build for it") from None
    return device
