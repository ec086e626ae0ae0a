"""Masks with infinities, or with numbers as large, stay exact: nothing would be left of the values beside them."""

from __future__ import annotations

import copy

import actcodec
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("graphs")
LEAST = torch.finfo(torch.float32).min
#: Masks of scores, (N, 1, T, T), from booleans that are True where a score counts, and a bias (T, T).
MASKS = {
    "where": lambda seen, bias: torch.where(seen, 0.0, -torch.inf),
    "masked_fill": lambda seen, bias: bias.expand(seen.shape).masked_fill(~seen, -torch.inf),
    "product": lambda seen, bias: bias + (1 - seen.to(torch.float32)) * LEAST,
    "less": lambda seen, bias: bias + torch.where(seen, 0.0, -1e4),
}


class Block(nn.Module):
    """Attention with a mask, and an MLP."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return what attention and the MLP add to ``x``."""
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        x = x + F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
        return x + self.mlp(x)


class Masked(nn.Module):
    """Blocks that share a mask: each is a checkpoint, or the mask passes from part to part of the compiled model."""

    def __init__(self, mask: str, *, checkpoints: bool) -> None:
        super().__init__()
        self.blocks, self.mask, self.checkpoints = nn.ModuleList(Block() for _ in range(2)), MASKS[mask], checkpoints
        self.bias, self.head = nn.Parameter(torch.randn(48, 48)), nn.Linear(32, 5)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return log-probabilities in which the last class is forbidden."""
        place = torch.arange(x.shape[1])
        seen = (place[None, :] <= place[:, None])[None, None] & (place < lengths[:, None])[:, None, None]
        mask = self.mask(seen, self.bias)
        for block in self.blocks:
            x = checkpoint(block, x, mask, use_reentrant=False) if self.checkpoints else block(x, mask)
        return F.log_softmax(self.head(x).masked_fill(torch.arange(5) == 4, -torch.inf), 2)


def gradients(model: nn.Module) -> Tensor:
    """Return the gradient of a step as one vector."""
    model.zero_grad()
    random = torch.Generator().manual_seed(1)
    x, lengths = torch.randn(8, 48, 32, generator=random), torch.tensor([48, 33, 12, 40, 48, 48, 5, 20])
    F.nll_loss(model(x, lengths).flatten(0, 1), torch.randint(4, (8 * 48,), generator=random)).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize(("checkpoints", "parts"), [(False, 3), (True, 1)])
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_with_masks(mask, checkpoints, parts):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Masked(mask, checkpoints=checkpoints)
    exact = gradients(copy.deepcopy(model))
    actcodec.compiled(model, "int8", parts=parts)
    assert torch.cosine_similarity(gradients(model), exact, 0) > 0.9995


def test_checkpoints_of_transformers(transformers):
    """Blocks of a language model share a mask that no block computes again."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    model = transformers.LlamaForCausalLM(config).train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    tokens = torch.randint(2, 99, (8, 48))

    def gradient() -> Tensor:
        model.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    exact = gradient()
    actcodec.compiled(model, "int8")
    assert torch.cosine_similarity(gradient(), exact, 0) > 0.999
