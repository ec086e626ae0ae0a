"""Integer and floating-point forms of DIVISION and ActNN, with BLPA and AutoQuant, on real activations and in training.

    python benchmarks/affine_forms.py [--dataset cifar10 --limit 4000]

Prints two markdown tables. The first takes what a ResNet saves after a few epochs of training without compression (what the
policy of DIVISION gives to a codec; maps of 8x8 values and more): ratio to float32, and the root mean square error relative to
the root mean square of the activations, averaged over the tensors. The second trains the network with each codec in the place
of the policy's: ReLU masks in one bit, shapes that do not fit by ActNN's codec of the same form.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import actcodec
import torch
from actcodec.codecs import Codec, Packed, RawCopy
from actcodec.codecs.codec import NoCodec
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.training import CodecSpec, Policy, Rule
from torch import Tensor
from torch.nn import functional

#: Codecs of the first table.
FORMS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(
        (name, {"bits": bits, **options})
        for bits in (2, 4, 8)
        for name, options in (
            ("division-float", {}),
            ("division", {"range": "channel"}),
            ("division", {"range": "channel", "S": 1.5}),
            ("division", {"range": "channel", "S": 2.0}),
            ("division", {}),
            ("actnn-float", {}),
            ("actnn", {}),
            ("blpa", {}),
            ("autoquant", {}),
            ("autoquantz", {}),
        )
    ),
    ("sfpr", {}),
)
#: Codecs of the second table, with the codec of what does not fit.
TRAINED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("division-float", {"bits": 2}, "actnn-float"),
    ("division", {"bits": 2, "range": "channel"}, "actnn"),
    ("division", {"bits": 2, "range": "channel", "S": 1.5}, "actnn"),
    ("division", {"bits": 2, "range": "channel", "S": 2.0}, "actnn"),
    ("division", {"bits": 2}, "actnn"),
    ("actnn-float", {"bits": 2}, "actnn-float"),
    ("actnn", {"bits": 2}, "actnn"),
)


class Recorder(NoCodec):
    """Keeps a copy of every tensor that a policy gives it."""

    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def compress(self, x: Tensor) -> RawCopy:
        """Implement ``Codec``."""
        self.seen.append(x.detach().clone())
        return RawCopy(self.seen[-1])

    def decompress(self, compressed: Packed) -> Tensor:
        """Implement ``Codec``."""
        return compressed.decompress()


def rules(dense: Codec | CodecSpec, unfit: Codec | CodecSpec) -> Policy:
    """The policy of DIVISION with other codecs."""
    return Policy(
        (
            Rule("exact", producer=("softmax", "loss")),
            Rule("exact", consumer=("loss",)),
            Rule("brc", producer=("relu",), consumer=("relu",)),
            Rule(dense),
            Rule(unfit),
        )
    )


def activations(recipe: experiment.Recipe, images: Dataset, seed: int) -> list[Tensor]:
    """Return the activations that one step of a network saves after the recipe's epochs."""
    torch.manual_seed(seed)
    model = experiment.build_model(recipe, images)
    optimizer = torch.optim.SGD(model.parameters(), recipe.learning_rate, momentum=0.9)
    order = torch.Generator().manual_seed(seed)
    for _ in range(recipe.epochs):
        shuffled = torch.randperm(len(images.train_inputs), generator=order)
        for chosen in torch.split(shuffled, recipe.batch)[:-1]:
            optimizer.zero_grad()
            torch.autograd.backward(functional.cross_entropy(model(images.train_inputs[chosen]), images.train_targets[chosen]))
            optimizer.step()
    recorder = Recorder()
    with actcodec.compress_activations(model, rules(recorder, recorder)):
        model(images.train_inputs[: recipe.batch]).sum()
    return [x for x in recorder.seen if actcodec.codec("division").fits(x.shape)]


def label(name: str, options: dict[str, Any]) -> str:
    """A codec and its options but for the bits."""
    return " ".join([name, *(f"{key}={value}" for key, value in options.items() if key != "bits")])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    images = load(arguments.dataset, arguments.data, arguments.limit)
    recipe = experiment.Recipe(width=arguments.width, epochs=arguments.epochs)
    tensors = activations(recipe, images, 0)
    values = sum(x.numel() for x in tensors)
    print(f"- {len(tensors)} tensors, {values} values, of a ResNet of width {recipe.width} on {images.name}.\n")
    print("| codec | bits | ratio | error | mean error |")
    print("|---|---|---|---|---|")
    for name, options in FORMS:
        codec = actcodec.codec(name, **options)
        packed = [codec.compress(x) for x in tensors]
        errors = [(codec.decompress(one) - x).double() for one, x in zip(packed, tensors, strict=True)]
        sizes = [x.double().square().mean().sqrt() for x in tensors]
        relative = sum(float(e.square().mean().sqrt() / size) for e, size in zip(errors, sizes, strict=True)) / len(tensors)
        mean = sum(float(e.mean() / size) for e, size in zip(errors, sizes, strict=True)) / len(tensors)
        ratio = 4 * values / sum(one.nbytes for one in packed)
        print(f"| {label(name, options)} | {options.get('bits', 8)} | {ratio:.2f} | {relative:.4f} | {mean:+.5f} |", flush=True)

    policies = {"none": Policy(())}
    for name, options, unfit in TRAINED:
        bits = {"bits": options["bits"]}
        policies[f"{label(name, options)}, {options['bits']} bits"] = rules(CodecSpec(name, options), CodecSpec(unfit, bits))
    runs = [
        experiment.train(recipe, images, name, policy, seed)
        for seed in range(arguments.seeds)
        for name, policy in policies.items()
    ]
    print(f"\n- {recipe.epochs} epochs, batch {recipe.batch}, {arguments.seeds} seeds; ratio of all saved activations.\n")
    print("| codec | accuracy (%) | difference to none | ratio |")
    print("|---|---|---|---|")
    for row in experiment.summarise(runs):
        difference = "-" if row.codec == "none" else f"{row.difference:+.2f} ± {row.difference_deviation:.2f}"
        print(f"| {row.codec} | {row.score:.2f} ± {row.score_deviation:.2f} | {difference} | {row.ratio:.2f} |")


if __name__ == "__main__":
    main()
