"""Policies list their kernels, and a policy without kernels on a GPU warns once."""

import warnings
from types import SimpleNamespace

import actcodec
import pytest
import torch
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs import CODEC_NAMES, codec_options
from actcodec.golden import entropy_decoder, entropy_encoder, floating
from actcodec.policies.catalog import POLICY_NAMES, policy
from actcodec.policies.kernels import CPU, GPU, ON_THE_HOST, WITHOUT_GPU_KERNELS, KernelsWarning, kernels_of, warning_of
from actcodec.policies.policy import SavedTensor
from actcodec.training.compression import Compression, Limits
from actcodec.training.selection import ModuleSelection
from cdu_cli.main import app
from torch import nn
from typer.testing import CliRunner

#: Modules with the functions of forms that no hardware has.
FORMS = (*(getattr(floating, name) for name in floating.__all__), entropy_encoder, entropy_decoder)


def test_codecs_without_kernels_are_codecs_that_have_a_backend():
    assert set(CODEC_NAMES) >= WITHOUT_GPU_KERNELS >= ON_THE_HOST
    assert all("backend" in codec_options(name) for name in WITHOUT_GPU_KERNELS)


def test_codecs_with_kernels_use_no_function_that_the_triton_backend_leaves_to_torch():
    """And those without use one, or a mode that has no kernels."""
    pytest.importorskip("triton")
    from actcodec.backends.triton.backend import TritonBackend
    from actcodec.backends.triton.modes import ENCODERS

    forms = {vars(module)[name] for module in FORMS for name in vars(module) if not name.startswith("_")}
    used = {}

    class Spy(TorchBackend):
        def compress_tensor(self, x, view, job):
            used[name].add(f"mode {job.mode.name}" if job.mode not in ENCODERS else "kernel")
            return super().compress_tensor(x, view, job)

        def run(self, function, *arguments, **options):
            if function in forms:
                used[name].add("kernel" if function in TritonBackend.implementations else function.__name__)
            return super().run(function, *arguments, **options)

    x = torch.randn(2, 8, 16, 16, generator=torch.Generator().manual_seed(0))
    for name in CODEC_NAMES:
        if "backend" not in codec_options(name) or name == "bypass":
            continue
        used[name] = set()
        actcodec.codec(name, backend=Spy()).compress(x)
    without = {name for name, parts in used.items() if not parts <= {"kernel"}}
    assert without == WITHOUT_GPU_KERNELS


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("sfpr", (CPU, GPU)),
        ("jpeg-gmc", (CPU, GPU)),
        ("actnn-L2", (CPU, GPU)),
        ("transformer", (CPU,)),
        ("blpa-coded", (CPU,)),
        ("nvfp4", (CPU, GPU)),
        ("none", ()),
        ("bf16", ()),
    ],
)
def test_where_policies_have_kernels(name, where):
    assert kernels_of(name) == where
    part = CliRunner().invoke(app, ["list", "--all"]).output
    (line,) = [one for one in part[part.index("\npolicies:") : part.index("\nbackends:")].splitlines() if f"  {name} " in one]
    assert ("kernels " + " ".join(where) in line) if where else ("kernels" not in line)


def test_no_policy_is_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {kernels_of(name) for name in POLICY_NAMES} == {(), (CPU,), (CPU, GPU)}


@pytest.mark.parametrize("name", ["blpa-coded", "transformer"])
def test_backend_triton_says_once_that_it_has_no_kernels(name):
    chosen = policy(name, backend="triton")
    with pytest.warns(KernelsWarning, match=rf"policy '{name}': codec '[a-z0-9-]+' has no kernels for GPUs.*policies.md"):
        actcodec.compress_activations(nn.Linear(4, 4), chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        actcodec.compress_activations(nn.Linear(4, 4), chosen)
        for backend in ("native", "auto"):
            actcodec.compress_activations(nn.Linear(4, 4), name, backend=backend)
        actcodec.compress_activations(nn.Linear(4, 4), "sfpr", backend="triton")


def test_what_is_said_of_the_host():
    chosen = policy("blpa-coded")
    (said,) = {warning_of(chosen, one) for one in chosen.codecs_of_rules if one.name == "blpa-coded"}
    assert "its entropy coder runs on the host, to which every tensor is copied" in said
    chosen = policy("division-float")
    (said,) = {warning_of(chosen, one) for one in chosen.codecs_of_rules if one.name == "division-float"}
    assert "host" not in said
    assert warning_of(policy("sfpr"), actcodec.codec("sfpr")) is None


def test_a_tensor_on_a_gpu_makes_a_policy_say_it_once():
    """Whatever the backend: the codec is asked when a tensor comes that lies there."""
    chosen = policy("blpa-coded")
    work = Compression(chosen, Limits(ModuleSelection(nn.Identity(), "*", ())), measure_error=False, strict=False)
    tensor = SavedTensor("linear", "linear", (4, 64), torch.float32)
    (codec,) = (one for one in chosen.codecs_of_rules if one.name == "blpa-coded")
    on_gpu = SimpleNamespace(tensor=SimpleNamespace(device=torch.device("cuda")), operation=None)
    with pytest.warns(KernelsWarning, match="policy 'blpa-coded'"), pytest.raises(AttributeError):
        work.kept(on_gpu, tensor, codec)  # it is no tensor: compressing it is past the warning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError):
            work.kept(on_gpu, tensor, codec)
