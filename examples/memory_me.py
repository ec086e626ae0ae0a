"""A script for `cdu memory`: a `model`, batches of any size and a `step()` on one, none of which has values.

The command says how much memory a step takes by policy, where the most of it is, and which batch fits into a GPU. Here it is a
decoder of the shape of Llama 3.2 3B.   cdu memory examples/memory_me.py --dtype bf16 --optimizer adamw --batch 2
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, GROUPS, LENGTH = 128256, 3072, 8192, 28, 24, 8, 4096


class Norm(nn.Module):
    """Root mean square normalisation, in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """(N, T, width), any format."""
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.scale


class Layer(nn.Module):
    """Attention of grouped heads with turned positions, and a gated pair of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        size = WIDTH // HEADS
        self.before_attention, self.before_gate = Norm(), Norm()
        self.queries = nn.Linear(WIDTH, WIDTH, bias=False)
        self.keys, self.values = (nn.Linear(WIDTH, GROUPS * size, bias=False) for _ in range(2))
        self.result = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, turns: Tensor) -> Tensor:
        """(N, T, width) and (T, size of a head / 2, 2), cosines and sines."""

        def heads(y: Tensor, turned: bool) -> Tensor:
            y = y.unflatten(-1, (-1, WIDTH // HEADS))
            if turned:
                a, b = y.float().unflatten(-1, (-1, 2)).unbind(-1)
                cosine, sine = turns[:, None].unbind(-1)
                y = torch.stack((a * cosine - b * sine, b * cosine + a * sine), -1).flatten(-2).type_as(y)
            return y.transpose(1, 2)

        def repeated(y: Tensor) -> Tensor:
            return y.unsqueeze(2).expand(-1, -1, HEADS // GROUPS, -1, -1).flatten(1, 2)

        y = self.before_attention(x)
        q, k, v = heads(self.queries(y), True), heads(self.keys(y), True), heads(self.values(y), False)
        found = F.scaled_dot_product_attention(q, repeated(k), repeated(v), is_causal=True)
        x = x + self.result(found.transpose(1, 2).flatten(-2))
        y = self.before_gate(x)
        result: Tensor = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return result


class Decoder(nn.Module):
    """Compute the states that are multiplied with the vocabulary from tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        self.register_buffer("turns", torch.zeros(LENGTH, WIDTH // HEADS // 2, 2, dtype=torch.float32))

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 (N, T) -> (N, T, width)."""
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.turns)
        result: Tensor = self.norm(x)
        return result


model = Decoder()


def batch(count: int) -> tuple[Tensor, Tensor]:
    """Tokens, and those that come next."""
    tokens = torch.randint(VOCABULARY, (count, LENGTH + 1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def step(tokens: Tensor, following: Tensor) -> Tensor:
    """The loss of a batch, of logits in float32; the vocabulary's weights are those of the embedding."""
    logits = F.linear(model(tokens), model.embedding.weight).float()
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())
