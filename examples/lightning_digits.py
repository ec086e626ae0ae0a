"""A convolutional network trains with Lightning and compressed activations, as one key of a TOML file says.

The digits are scikit-learn's. The callback logs the ratio beside the loss; validation is as always, and the state of the policy
is in Lightning's checkpoints.   python examples/lightning_digits.py --config mine.toml --epochs 2
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from actcodec.integrations.lightning import CompressionCallback
from actcodec.training import configuration
from lightning.pytorch import LightningModule, Trainer
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

CONFIG = """
[compression]
policy = "jpeg-gmc"       # any policy of docs/user/plugin.md, with its options
exclude = ["layers.8"]    # modules whose activations stay exact: here the last layer
min_bytes = 1024          # so do smaller tensors
"""


class Digits(LightningModule):
    """Three convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10)),
        )

    def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
        """The loss of a batch."""
        loss = F.cross_entropy(self.layers(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], number: int) -> None:
        """Part of the digits that are recognised."""
        self.log("accuracy", (self.layers(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def batches() -> tuple[DataLoader[tuple[Tensor, ...]], DataLoader[tuple[Tensor, ...]]]:
    """Return batches of digits at 16x16, for training and for validation."""
    found = load_digits()
    images = F.interpolate(torch.from_numpy(found.images).float()[:, None] / 16, scale_factor=2, mode="bilinear")
    classes = torch.from_numpy(found.target)
    return (
        DataLoader(TensorDataset(images[:1536], classes[:1536]), batch_size=64, shuffle=True),
        DataLoader(TensorDataset(images[1536:], classes[1536:]), batch_size=261),
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, help="a TOML file with a key [compression], in place of the one in this program")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        config = options.config or Path(folder) / "train.toml"
        if options.config is None:
            config.write_text(CONFIG, encoding="utf-8")
        callback = CompressionCallback(**configuration(config))
        trainer = Trainer(
            max_epochs=options.epochs,
            accelerator="cpu",
            callbacks=[callback],
            default_root_dir=folder,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Digits(), *batches())
    measured = {name: float(value) for name, value in trainer.callback_metrics.items()}
    print(f"loss {measured['loss']:.3f}, accuracy {measured['accuracy']:.3f}")
    assert callback.statistics is not None, "it has trained"
    print(f"all that autograd keeps in 1/{measured['ratio_of_everything']:.1f} of its bytes; by tensor:")
    print(callback.statistics.table())


if __name__ == "__main__":
    main()
