"""torch's own means: settings reach the model that is compiled under them, and no other of its class."""

import copy

import pytest
import torch
import torch._functorch.config as functorch
import torch._inductor.config as inductor
from torch import nn
from torch_means import PLAIN, TORCH_MEANS, compile_in_place


class Cubes(nn.Module):
    """Saves the sine, large enough for the FP8 pass."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        return (self.layer(x.sin()) ** 3).mean()


@pytest.mark.campaign
def test_models_of_one_class_are_compiled_apart():
    torch.manual_seed(0)
    model, x = Cubes(), torch.randn(1024, 64)
    gradients = {}
    for name in (None, PLAIN, "FP8 pass"):
        one = copy.deepcopy(model)
        if name is None:
            torch.autograd.backward(one(x))
        else:
            compile_in_place(one)
            with TORCH_MEANS[name]():
                torch.autograd.backward(one(x))
        gradients[name] = one.layer.weight.grad
    torch.testing.assert_close(gradients[PLAIN], gradients[None])
    error = (gradients["FP8 pass"] - gradients[None]).norm() / gradients[None].norm()
    assert 1e-3 < error < 0.1


def in_force():
    return (
        functorch.activation_memory_budget,
        functorch.ban_recompute_materialized_backward,
        inductor.post_grad_fusion_options,
        inductor.allow_buffer_reuse,
    )


def test_settings_end_with_their_context():
    before = in_force()
    for name, settings in TORCH_MEANS.items():
        with settings():
            assert (in_force() == before) == (name == PLAIN)
        assert in_force() == before
