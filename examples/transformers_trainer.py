"""A small language model trains with transformers' Trainer and compressed activations: one callback is all there is to it.

The model is a Llama with random weights, the text this file; nothing is downloaded. A second run goes on from a checkpoint of
the first, with the same bits: the policy's state is in it.   python examples/transformers_trainer.py --policy actnn --steps 20
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from actcodec.integrations.transformers import CompressionCallback
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

LENGTH = 64


class Text(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Pieces of a text, a byte for each token."""

    def __init__(self, path: Path) -> None:
        text = torch.tensor(list(path.read_bytes()))
        self.pieces = text[: len(text) // LENGTH * LENGTH].view(-1, LENGTH)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        return {"input_ids": self.pieces[place], "labels": self.pieces[place]}


def trainer(policy: str, steps: int, folder: Path) -> Trainer:
    """A trainer for a new model; checkpoints at half of the steps and at their end."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, use_cache=False
    )
    settings = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=8,
        learning_rate=3e-3,
        logging_steps=max(steps // 5, 1),
        save_steps=steps // 2,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    callbacks: list[TrainerCallback] = [CompressionCallback(policy)]
    return Trainer(LlamaForCausalLM(config), settings, train_dataset=Text(Path(__file__)), callbacks=callbacks)


def weights(trainer: Trainer) -> list[Tensor]:
    """Return the parameters of its model."""
    return [] if trainer.model is None else [*trainer.model.parameters()]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="actnn", help="any policy of docs/user/plugin.md")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = trainer(options.policy, options.steps, Path(folder) / "whole")
        whole.train()
        half = Path(folder) / "whole" / f"checkpoint-{options.steps // 2}"
        again = trainer(options.policy, options.steps, Path(folder) / "again")
        again.train(resume_from_checkpoint=str(half))
    rows = [row for row in whole.state.log_history if "loss" in row]
    ratio = rows[-1]["ratio_of_everything"]
    print(f"\nloss {rows[0]['loss']:.3f} to {rows[-1]['loss']:.3f}; all that autograd keeps in 1/{ratio:.1f} of its bytes")
    same = all(torch.equal(one, other) for one, other in zip(weights(whole), weights(again), strict=True))
    print(f"weights of the run that was gone on with: {'the same to the last bit' if same else 'others'}")


if __name__ == "__main__":
    main()
