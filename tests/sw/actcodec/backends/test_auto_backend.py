"""Backend ``auto`` gives the bytes of the backends that it chooses from."""

import warnings

import actcodec
import pytest
import torch
from actcodec.backends import auto_backend
from actcodec.backends.native.backend import NativeBackend
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs import CODEC_NAMES, codec_options
from cdu_tools.errors import MissingToolError

CODECS = [name for name in CODEC_NAMES if "backend" in codec_options(name)]


@pytest.fixture
def _forgotten():
    auto_backend._on_the_cpu.cache_clear()
    yield
    auto_backend._on_the_cpu.cache_clear()


@pytest.mark.parametrize("name", CODECS)
def test_values_are_those_of_the_others(name):
    x = torch.randn(2, 6, 24, 24, generator=torch.Generator().manual_seed(0))
    found = {}
    for backend in ("torch", "native", "auto"):
        fixed = {"coder": "deflate"} if codec_options(name).get("coder") == "auto" else {}
        codec = actcodec.codec(name, backend=backend, **fixed)
        packed = codec.compress(x)
        found[backend] = packed.nbytes, codec.decompress(packed)
    for backend in ("torch", "native"):
        assert found["auto"][0] == found[backend][0]
        assert torch.equal(found["auto"][1].view(torch.int32), found[backend][1].view(torch.int32))


@pytest.mark.usefixtures("_forgotten")
def test_kernels_compute_on_the_cpu_alone(monkeypatch):
    computed = []
    for kind in (NativeBackend, TorchBackend):
        whole = kind.compress_tensor
        monkeypatch.setattr(
            kind, "compress_tensor", lambda self, *job, whole=whole: (computed.append(type(self)), whole(self, *job))[1]
        )
    actcodec.codec("sfpr+zvc", backend="auto").compress(torch.randn(2, 3, 8, 8))
    assert computed == [NativeBackend]
    assert type(auto_backend.fastest(torch.empty(1, device="meta"))) is TorchBackend


@pytest.mark.usefixtures("_forgotten")
def test_without_a_compiler_torch_computes_with_one_warning(monkeypatch):
    def missing():
        raise MissingToolError("no C++ compiler was found: install g++")

    monkeypatch.setattr("actcodec.backends.native.backend.kernels", missing)
    x = torch.randn(2, 3, 8, 8)
    codec = actcodec.codec("jpeg-act", backend="auto")
    with pytest.warns(UserWarning, match="'auto' computes by torch, which is slower: no C\\+\\+ compiler was found"):
        packed = codec.compress(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert codec.compress(x).to_bytes() == packed.to_bytes() == actcodec.codec("jpeg-act").compress(x).to_bytes()
