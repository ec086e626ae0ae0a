"""benchmarks/uncoded.py: gradients of training steps are those of the codecs, to the last bit."""

import actcodec
import pytest
import torch
from actcodec.study.models import ResNet
from actcodec.training import policy
from triton_here import DEVICE, needs_kernels

pytestmark = needs_kernels


def gradients(name, backend, **options):
    torch.manual_seed(0)
    model = ResNet(channels=3, width=4, depth=1, stages=2).to(DEVICE)
    images, labels = torch.randn(2, 3, 16, 16).to(DEVICE), torch.randint(10, (2,)).to(DEVICE)
    with actcodec.compress_activations(model, policy(name, backend=backend, **options)):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    return [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize(("name", "options"), [("jpeg-gmc", {}), ("jpeg-act", {}), ("blpa-coded", {"bits": 6})])
def test_same_gradients(name, options):
    from uncoded import UncodedBackend

    expected, found = gradients(name, "torch", **options), gradients(name, UncodedBackend(), **options)
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
