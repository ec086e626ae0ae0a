"""Backends run golden functions, or functions with the same parameters in their place."""

import inspect
from types import MappingProxyType

import pytest
import torch
from actcodec.backends.auto_backend import AutoBackend
from actcodec.backends.native.backend import NativeBackend
from actcodec.backends.native.build import sources
from actcodec.backends.native.kernels import signatures
from actcodec.backends.torch_backend import TorchBackend
from actcodec.golden import floating
from actcodec.golden.codes import pack_tight
from actcodec.golden.sfpr import channel_maxima


def implementations():
    found = list(NativeBackend.implementations.items())
    try:
        from actcodec.backends.triton.backend import TritonBackend
    except ModuleNotFoundError:
        return found
    return found + list(TritonBackend.implementations.items())


@pytest.mark.parametrize(("golden", "own"), implementations(), ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_parameters_are_those_of_the_golden_function(golden, own):
    """Names, kinds and defaults: arguments may be given by name."""
    expected, found = (
        [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]
        for function in (golden, own)
    )
    assert found == expected
    assert golden.__module__.startswith("actcodec.golden.")


def test_every_form_has_compiled_functions():
    for name in floating.__all__:
        module = getattr(floating, name)
        assert any(golden.__module__ == module.__name__ for golden in NativeBackend.implementations)


def test_run_computes_the_golden_function_or_the_own_one():
    class Odd(TorchBackend):
        implementations = MappingProxyType({pack_tight: lambda codes, bits: codes + bits})

    codes = torch.tensor([1, 0, 1, 1, 0, 0, 0, 0], dtype=torch.uint8)
    assert Odd().run(pack_tight, codes, 1).tolist() == [2, 1, 2, 2, 1, 1, 1, 1]
    assert TorchBackend().run(pack_tight, codes, bits=1).tolist() == [0b1101]
    assert NativeBackend().run(pack_tight, codes, bits=1).tolist() == [0b1101]


def test_auto_asks_the_first_tensor():
    steps = torch.ones(2)
    x = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    found = AutoBackend().run(floating.predicted.cells, x, steps)
    golden = floating.predicted.middles(floating.predicted.cells(x, steps), steps, x.shape, x.dtype)
    assert torch.equal(AutoBackend().run(floating.predicted.middles, found, steps, x.shape, x.dtype), golden)
    assert torch.equal(AutoBackend().run(channel_maxima, x.view(2, 2, -1)), x.double().abs().amax((0, 2, 3)))


SOURCE = """
int hidden(int a) { return a; }
extern "C" {
// A comment (with, brackets) {
bool all(const void* x, int64_t count, int format, float most, double parts, bool dense, uint32_t seed,
         int16_t* y, int threads) {
    return true;
}
void none(int) {
}
}
"""


def test_argument_types_are_read_from_the_sources():
    found = signatures(SOURCE)
    names = {}
    for name, (arguments, result) in found.items():
        names[name] = [kind.__name__ for kind in arguments], None if result is None else result.__name__
    kinds = ["c_void_p", "c_long", "c_int", "c_float", "c_double", "c_bool", "c_uint", "c_void_p", "c_int"]
    assert names == {"all": (kinds, "c_bool"), "none": (["c_int"], None)}


def test_every_kernel_ends_with_the_number_of_threads():
    found = {name: arguments for source in sources().values() for name, (arguments, _) in signatures(source).items()}
    assert len(found) > 50
    assert {arguments[-1].__name__ for arguments in found.values()} == {"c_int"}


def test_an_unknown_argument_type_is_refused():
    with pytest.raises(KeyError, match="size_t"):
        signatures('extern "C" {\nvoid one(size_t count, int threads) {\n}\n}')
