"""Training with backend triton gives the gradients of the torch version on the same device, to the last bit."""

import actcodec
import pytest
import torch
from actcodec.study.models import ResNet
from actcodec.training import policy
from triton_here import DEVICE, needs_kernels

pytestmark = needs_kernels


def gradients(name, backend):
    torch.manual_seed(0)
    model = ResNet(channels=3, width=4, depth=1, stages=2).to(DEVICE)
    images, labels = torch.randn(2, 3, 16, 16).to(DEVICE), torch.randint(10, (2,)).to(DEVICE)
    with actcodec.compress_activations(model, policy(name, backend=backend)) as stats:
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    return [parameter.grad for parameter in model.parameters()], stats.bytes_compressed


@pytest.mark.parametrize("name", ["jpeg-act", "division", "actnn-L2"])
def test_same_gradients(name):
    (expected, kept), (found, kept_too) = gradients(name, "torch"), gradients(name, "triton")
    assert kept == kept_too
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
