"""Write the data of `cdu offload` on networks and compression ratios: extras/offload/cdu_offload/networks.json and ratios.json.

    python benchmarks/offload_data.py [networks] [ratios]

Networks are traced (:mod:`cdu_offload.trace`). For the ratios every reference network is trained uncompressed; every so many
steps the activations of one training batch are compressed by every codec, so that all see the same ones. (A results.json of
`cdu train`, which `cdu offload --ratios` takes, has those of networks that trained with the compression.) $CDU_DATA_DIR names
the folder with CIFAR-10.
"""

from __future__ import annotations

import argparse
import json
import sys

import torch
from actcodec.backends.named import NATIVE
from actcodec.study import data, experiment
from actcodec.training import compress_activations
from cdu_offload import network, ratios
from cdu_offload.architectures import ARCHITECTURES
from cdu_offload.catalog import MEASURED
from cdu_offload.ratios import Ratios
from cdu_offload.trace import trace
from cdu_spec.modes import JPEG_GMC
from cdu_tools.files import write_whole

#: Model -> data, width and depth. With two convolutions between pools VGG has maps of all kinds.
MODELS = {
    "resnet": ("cifar10", 16, 2),
    "vgg": ("cifar10", 16, 2),
    "wide-resnet": ("cifar10", 16, 1),
    "vdsr": ("photos", 24, 6),
}
#: Training images, images per step, steps, and steps from one measurement to the next.
IMAGES, BATCH, STEPS, EVERY = 2048, 32, 160, 40
#: JPEG-ACT's table for all but the first epochs; GIST's smallest numbers; the bits of DIVISION and ActNN.
#: Policy jpeg-gmc keeps the table of its own.
SETTINGS = {"dqt": "optH", "dpr": "fp8", "bits": 2, "backend": NATIVE}


def write_networks() -> None:
    """Trace every architecture."""
    rows = []
    for name, known in ARCHITECTURES.items():
        print(f"tracing {name}", file=sys.stderr)
        rows.append(trace(name, known.title, known.family, known.build, known.inputs, known.classes).to_dict())
    # One line per network: as many lines as there are kernels would drown every other change.
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    write_whole(network.SHIPPED, f'{{"command":"python benchmarks/offload_data.py networks","networks":[\n{lines}\n]}}\n')


def measure(model: str) -> dict[str, Ratios]:
    """Codec -> its ratios on a network, added up over all measurements."""
    source, width, depth = MODELS[model]
    images = data.load(source, None, IMAGES)
    recipe = experiment.Recipe.usual(model, width=width, depth=depth, steps=STEPS, batch=BATCH)
    module = experiment.initial_model(recipe, images, 0)
    kind = experiment.network(model)
    optimizer = kind.optimizer(module, recipe.learning_rate)
    published = [codec for codec in MEASURED if codec != JPEG_GMC]
    policies = experiment.codec_policies(published, **SETTINGS) | experiment.codec_policies([JPEG_GMC], backend=NATIVE)
    found = {codec: Ratios() for codec in MEASURED}
    order = torch.Generator().manual_seed(0)
    for step in range(1, STEPS + 1):
        chosen = torch.randperm(len(images.train_inputs), generator=order)[:BATCH]
        inputs, targets = images.train_inputs[chosen], images.train_targets[chosen]
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(experiment.loss_of(module(inputs), targets, images))
        if kind.gradient_norm is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), kind.gradient_norm)
        optimizer.step()
        if step % EVERY:
            continue
        print(f"{model}: step {step} of {STEPS}", file=sys.stderr, flush=True)
        for codec, sums in found.items():
            with compress_activations(module, policies[codec]) as statistics:
                experiment.loss_of(module(inputs), targets, images)
            sums.count(statistics.tensors)
    return found


def write_ratios() -> None:
    """Measure on every reference network."""
    models = {model: {codec: sums.to_dict() for codec, sums in measure(model).items()} for model in MODELS}
    about = {"command": "python benchmarks/offload_data.py ratios", "settings": SETTINGS | {"steps": STEPS, "batch": BATCH}}
    write_whole(ratios.SHIPPED, json.dumps(about | {"models": models}, indent=1) + "\n")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = {"networks": write_networks, "ratios": write_ratios}
    parser.add_argument("what", nargs="*", choices=[*what, "both"], default="both", help="which of both (default: both)")
    chosen = parser.parse_args().what
    for name in what if "both" in chosen else chosen:
        what[name]()


if __name__ == "__main__":
    main()
