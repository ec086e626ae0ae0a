"""A ResNet trains on handwritten digits with its activations compressed; beside it the same run without compression.

Prints the loss as it goes, then what was kept in how many bytes. The model is torchvision's where that imports, else the one
that comes with actcodec; the digits are scikit-learn's.   python examples/train_resnet.py --policy jpeg-act --steps 30
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext

import actcodec
import torch
from actcodec.study.models.resnet import ResNet
from torch import Tensor, nn
from torch.nn import functional as F

CLASSES = 10


def digits() -> tuple[Tensor, Tensor]:
    """Images (N, 1, 16, 16) with values in 0..1 and their classes; random ones where scikit-learn is not installed."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        generator = torch.Generator().manual_seed(0)
        return torch.rand(512, 1, 16, 16, generator=generator), torch.randint(CLASSES, (512,), generator=generator)
    found = load_digits()
    images = torch.from_numpy(found.images).float()[:, None] / 16
    return F.interpolate(images, scale_factor=2, mode="bilinear", align_corners=False), torch.from_numpy(found.target)


def network() -> nn.Module:
    """A small ResNet for images of one channel."""
    try:
        from torchvision.models.resnet import BasicBlock
        from torchvision.models.resnet import ResNet as Torchvision
    except (ImportError, RuntimeError):  # torchvision of another build than torch: `cdu list` says what to do
        return ResNet(channels=1, classes=CLASSES)
    model: nn.Module = Torchvision(BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)
    model.conv1 = nn.Conv2d(1, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()
    return model


def train(policy: str | None, steps: int, batch: int) -> list[float]:
    """Train and return the loss of every step; print a few of them, and with a policy the kept bytes."""
    torch.manual_seed(0)
    images, classes = digits()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = torch.Generator().manual_seed(1)
    losses = []
    for step in range(steps):
        chosen = torch.randint(len(images), (batch,), generator=order)
        # Saved tensors are compressed in forward, and decompressed when backward needs them.
        with actcodec.compress_activations(model, policy) if policy else nullcontext() as stats:
            loss = F.cross_entropy(model(images[chosen]), classes[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % max(steps // 5, 1) == 0 or step == steps - 1:
            print(f"{policy or 'uncompressed':>14}  step {step:3}  loss {losses[-1]:.3f}", flush=True)
    if stats is not None:
        print(f"\nlast step: saved tensors in 1/{stats.ratio_of_everything:.1f} of their bytes; by tensor:\n{stats}")
    return losses


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="jpeg-act", help="any policy of docs/user/plugin.md")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=32)
    options = parser.parse_args()
    plain = train(None, options.steps, options.batch)
    compressed = train(options.policy, options.steps, options.batch)
    tail = max(options.steps // 5, 1)
    means = [sum(losses[-tail:]) / tail for losses in (plain, compressed)]
    print(f"\nmean loss of the last {tail} steps: {means[0]:.3f} uncompressed, {means[1]:.3f} with {options.policy}")


if __name__ == "__main__":
    main()
