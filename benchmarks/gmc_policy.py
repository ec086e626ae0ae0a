"""Policy jpeg-gmc beside the published one: bytes, and the direction of the gradient, by the form of signs.

    python benchmarks/gmc_policy.py --data cifar10.npz

Prints the rows of docs/methods/jpeg_gmc_policy.csv in Markdown. Each network is trained without compression for some steps;
then one step is compressed. The ratio is that of all activations, in bytes of streams; the cosine is that of the gradient of
all parameters to the one without compression. `coded` is the policy; `raw` has one bit per value in place of corrections, with
the same gradient; `none` has the signs of the reconstruction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import actcodec
import torch
from actcodec.codecs.signed_copies import SignedCopy
from actcodec.policies.policy import Policy
from actcodec.study import experiment
from actcodec.study.data import Dataset, load
from actcodec.study.diagnosis import Passes
from actcodec.training import policy
from cdu_spec.sfpr import PUBLISHED_S
from cdu_tools.report import table_row
from torch import Tensor, nn

_IMAGES, _BATCH, _STEPS = 4000, 64, 60
_NETWORKS = (("resnet", 1), ("vgg", 2), ("wide-resnet", 1), ("vdsr", 5))
_WIDTHS = {"vdsr": 64}
_POLICIES = (("jpeg-act", "optL"), *(("jpeg-gmc", f"uniform-{step}") for step in (8, 16, 32)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--networks", default=",".join(name for name, _ in _NETWORKS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cifar = load("cifar10", arguments.data, _IMAGES)
    print("| network | policy | signs | ratio | cosine |")
    print("|---|---|---|--:|--:|")
    for name, depth in _NETWORKS:
        if name not in arguments.networks.split(","):
            continue
        images = cifar if experiment.network(name).classifies else load("photos")
        recipe = experiment.Recipe.usual(name, width=_WIDTHS.get(name, 16), depth=depth, steps=_STEPS)
        model = experiment.initial_model(recipe, images, 0)
        experiment.train(recipe, images, "none", policy("none"), 0, model=model)
        for row in _rows(model.train(), images):
            print(table_row([name, *row]), flush=True)


def _rows(model: nn.Module, images: Dataset) -> Iterator[list[str]]:
    """Policy, signs, ratio and cosine of one network."""
    inputs, targets = images.train_inputs[:_BATCH], images.train_targets[:_BATCH]
    passes = Passes(model, lambda: experiment.loss_of(model(inputs), targets, images))
    exact = _gradient(passes, policy("none"))

    def measured(chosen: Policy) -> tuple[float, float]:
        with torch.random.fork_rng(), actcodec.compress_activations(model, chosen) as stats:
            experiment.loss_of(model(inputs), targets, images)
        return stats.ratio, float(nn.functional.cosine_similarity(_gradient(passes, chosen), exact, 0))

    for name, table in (
        ("jpeg-act", "optL"),
        ("jpeg-gmc", "uniform-8"),
        ("jpeg-gmc", "uniform-16"),
        ("jpeg-gmc", "uniform-32"),
    ):
        chosen = policy(name, dqt=table, S=PUBLISHED_S, backend="native")
        shown = f"{name}, {table}"
        ratio, cosine = measured(chosen)
        yield [shown, "coded" if name == "jpeg-gmc" else "", f"{ratio:.1f}", f"{cosine:.4f}"]
        if table == "uniform-16":
            with _signs(raw=True):
                yield [shown, "raw", f"{measured(chosen)[0]:.1f}", f"{cosine:.4f}"]
            with _signs(raw=False):
                ratio, cosine = measured(chosen)
                yield [shown, "none", f"{ratio:.1f}", f"{cosine:.4f}"]


def _gradient(passes: Passes, chosen: Policy) -> Tensor:
    torch.manual_seed(0)
    return torch.cat([one.double().flatten() for one in passes.gradient(chosen) if one is not None])


@contextmanager
def _signs(*, raw: bool) -> Iterator[None]:
    """Signs as bits, or none: what a copy counts of them, and whether it has any."""
    own: Callable[[SignedCopy], int] = vars(SignedCopy)["nbytes"].fget

    def nbytes(copy: SignedCopy) -> int:
        kept = own(copy)
        if copy.corrections is None:
            return kept
        header = copy.corrections.header
        return kept - header.payload_bytes + header.shape[0]

    with patch.object(SignedCopy, "nbytes", property(nbytes)):
        if raw:
            yield
        else:
            with patch.object(SignedCopy, "keep_signs", lambda copy, x: None):
                yield


if __name__ == "__main__":
    main()
