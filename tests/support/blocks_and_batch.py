"""Small networks of convolutions and of attention, with a batch."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LETTERS = 32, 16


class Attention(nn.Module):
    """A block of a transformer, with linear layers before and after."""

    def __init__(self):
        super().__init__()
        self.before = nn.Linear(WIDTH, 3 * WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.after = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        query, key, value = self.before(self.norm(x)).view(*x.shape[:2], 2, -1).transpose(1, 2).chunk(3, -1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + F.gelu(self.after(mixed.transpose(1, 2).reshape(x.shape)))


def convolutions():
    """Convolutions with batch normalisation, ReLU and a sum."""
    blocks = [nn.Sequential(nn.Conv2d(i, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()) for i in (3, 8, 8)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))


def case(network):
    """A model, and a function that computes its loss of one batch."""
    torch.manual_seed(0)
    if network == "convolutions":
        model, x, y = convolutions(), torch.randn(4, 3, 16, 16), torch.randint(4, (4,))
    else:
        model, x, y = (
            nn.Sequential(Attention(), Attention()),
            torch.randn(2, LETTERS, WIDTH),
            torch.randint(LETTERS, (2, WIDTH)),
        )
    return model, lambda: F.cross_entropy(model(x), y)
