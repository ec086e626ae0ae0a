"""Tensors of every kind that codecs have trouble with."""

import torch


def values_of(kind, shape, dtype, seed):
    """Values of a kind, from a seed."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=random)
    info = torch.finfo(dtype)
    if kind == "relu":
        x = x.relu()
    elif kind in ("zero", "negative zero"):
        x = x * 0 if kind == "zero" else torch.full(shape, -0.0)
    elif kind == "max":
        return torch.where(x > 0, info.max, info.min).to(dtype)
    elif kind == "subnormal":
        return (torch.randint(-20, 21, shape, generator=random).double() * info.smallest_normal / 64).to(dtype)
    elif kind == "huge range":
        x = x * 2.0 ** torch.randint(-10, 11, shape, generator=random)
    elif kind == "one channel zero" and x.ndim > 1:
        x[:, 0] = 0
    elif kind == "ties":  # quotients with a half, and both zeros
        x = torch.randint(-64, 65, shape, generator=random) / 64 * torch.where(x > 0, 1.0, -1.0)
    return x.to(dtype)
