"""A network and its loss, on which contexts are opened and left."""

import torch
from torch import nn
from torch.nn import functional as F


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 8, 3, padding=1), nn.GELU(), nn.Flatten()),
        nn.Linear(8 * 64, 10),
    )


X, LABELS = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(4)


def loss_of(model):
    return F.cross_entropy(model(X), LABELS)


def gradient(model, loss):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def stacks():
    """Depths of torch's stacks of hooks and of function modes on this thread."""
    hooks = []
    while (pair := torch._C._autograd._top_saved_tensors_default_hooks(True)) is not None:
        torch._C._autograd._pop_saved_tensors_default_hooks()
        hooks.append(pair)
    for pair in reversed(hooks):
        torch._C._autograd._push_saved_tensors_default_hooks(*pair)
    return len(hooks), torch._C._len_torch_function_stack()
