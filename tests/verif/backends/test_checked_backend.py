"""A backend that compares a unit with the golden model: differences are named."""

import actcodec
import pytest
import torch
from actcodec.codecs import Backend, MismatchError
from cdu_spec import CduConfig
from cdu_verif.backends.checked_backend import CheckedBackend
from cdu_verif.backends.compiled.backend import RtlBackend
from tools_here import needs_verilator

pytestmark = needs_verilator


@pytest.fixture(scope="module")
def tiny():
    return RtlBackend(CduConfig(), threads=1)


def _tensor(shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


class Faulty(Backend):
    """Changes one byte or value of what another backend computes."""

    def __init__(self, inner, place):
        self.inner, self.place = inner, place

    def compress(self, job, beats):
        payload = self.inner.compress(job, beats).clone()
        if self.place == "byte":
            payload[5] ^= 1
        return payload[:-1] if self.place == "length" else payload

    def decompress(self, job, payload):
        beats = self.inner.decompress(job, payload).clone()
        if self.place == "value":
            beats[0, 3] += 1
        if self.place == "sign":
            beats[0, 3] = -1
        return beats


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            "byte",
            r"payload number 0 \(sfpr, from a tensor of shape \(1, 2, 8, 16\)\) differs .* at byte 5",
        ),
        ("length", r"has 255 bytes, the golden model's has 256"),
        ("value", r"tensor number 0 \(sfpr, shape \(1, 2, 8, 16\)\) differs from the golden model's at value 3"),
        ("sign", "at value 3: 0xbf800000 instead of 0x[0-9a-f]{8}$"),
    ],
)
def test_a_difference_is_named(tiny, place, message):
    codec = actcodec.codec("sfpr", backend=CheckedBackend(Faulty(tiny, place)))
    with pytest.raises(MismatchError, match=message):
        codec.decompress(codec.compress(_tensor((1, 2, 8, 16))))


@pytest.mark.parametrize("place", ["byte", "value"])
def test_a_difference_in_training_names_the_module(tiny, place):
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.Conv2d(8, 1, 3))
    x = _tensor((2, 1, 8, 16)).requires_grad_()

    def step():
        with actcodec.compress_activations(model, "sfpr", backend=CheckedBackend(Faulty(tiny, place))):
            loss = model(x).sum()
        loss.backward()

    with pytest.raises(MismatchError, match=r"^[01]: (payload|tensor) number 0"):
        step()
