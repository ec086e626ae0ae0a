"""Steps of training with torch's transforms and kinds of tensors: one for each row of the table in plugin.md."""

import functools
from dataclasses import dataclass

import torch
import torch.distributed.tensor
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.distributed import device_mesh  # noqa: F401
from torch.nn import functional as F
from torch.testing._internal.two_tensor import TwoTensor

#: Outcomes of a saved tensor: compressed, kept exactly under a name in the table, or refused with a message.
TRAINED, KEPT, REFUSED = "compressed", "kept exactly", "refused"
FEATURES = 64


@dataclass(frozen=True)
class Case:
    """A step: its loss by a layer and what is made of it; ``outcome``, and the kind's name in ``stats.not_counted``."""

    row: str
    step: object
    outcome: str = TRAINED
    kind: str = ""


class Renamed(torch.Tensor):
    """A subclass with memory of its own."""


class Wrapper(torch.Tensor):
    """A wrapper that computes by itself and does not say what it is made of."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad, strides=inner.stride()
        )

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def unwrapped(x):
            return x.inner if isinstance(x, cls) else x

        found = function(*torch.utils._pytree.tree_map(unwrapped, args), **(kwargs or {}))
        return torch.utils._pytree.tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, found)


class Unwrapped(torch.autograd.Function):
    """The tensor in a wrapper."""

    @staticmethod
    def forward(ctx, x):
        return x.inner

    @staticmethod
    def backward(ctx, gradient):
        return Wrapper(gradient)


def images(shape=(4, FEATURES), seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def rows(layout, **options):
    return torch.nested.nested_tensor([images((n, FEATURES), n) for n in (17, 5, 9)], layout=layout, **options)


def plain(layer):
    return F.gelu(layer(images())).square().sum()


def functional_call(layer):
    twice = {name: parameter * 2 for name, parameter in layer.named_parameters()}
    return F.gelu(torch.func.functional_call(layer, twice, (images(),))).square().sum()


def vmap(layer):
    return torch.func.vmap(lambda x: torch.tanh(x) * x.softmax(0))(layer(images((8, FEATURES)))).sum()


def vmapped_qr(layer):
    return torch.func.vmap(torch.linalg.qr)(layer(images()).view(-1, 8, 8))[0].sum()


def ensemble(layer):
    weights = torch.stack([layer.weight, layer.weight * 0.5, layer.weight + 0.1])
    biases = layer.bias.expand(3, -1)

    def one(weight, bias, x):
        return F.gelu(torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,)))

    return torch.func.vmap(one, in_dims=(0, 0, None))(weights, biases, images((16, FEATURES))).square().sum()


def jvp(layer):
    x = images()
    value, tangent = torch.func.jvp(lambda x: torch.tanh(layer(x)), (x,), (torch.cos(x),))
    return value.square().sum() + tangent.square().sum()


def jacfwd(layer):
    return torch.func.jacfwd(lambda x: torch.tanh(layer(x)))(images((FEATURES,))).square().sum()


def dual(layer):
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(images((16, FEATURES)), images((16, FEATURES), 2))
        y = torch.tanh(layer(x)) * 2
        value, tangent = torch.autograd.forward_ad.unpack_dual(y)
        return value.square().sum() + tangent.sum()


def func_grad(layer):
    return torch.func.grad(lambda x: layer(x).square().sum())(images()).sum()


def jacrev(layer):
    return torch.func.jacrev(lambda x: layer(x).square().sum())(images()).sum()


def hessian(layer):
    return torch.func.hessian(lambda x: layer(x).square().sum())(images((FEATURES,))).sum()


def vjp(layer):
    return torch.func.vjp(layer, images())[1](images())[0].sum()


def nested(layer):
    return torch.nested.to_padded_tensor(layer(rows(torch.strided)), 0.0).square().sum()


def jagged(layer):
    return F.gelu(layer(rows(torch.jagged))).values().square().sum()


def jagged_attention(layer):
    q = layer(rows(torch.jagged)).unflatten(-1, (4, 16)).transpose(1, 2)
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2).values().square().sum()


def sparse(layer, form):
    graph = (images((16, 16), 3) > 1).float()
    return (form(graph) @ torch.tanh(layer(images((16, FEATURES))))).square().sum()


def blocks(layer):
    return F.gelu(layer(images((16, FEATURES))).to_sparse_bsr((4, 4)).to_dense()).square().sum()


def trained_sparse(layer):
    weight = images((16, FEATURES), 3).relu().to_sparse().requires_grad_()
    return torch.sparse.mm(weight, layer(images((FEATURES, FEATURES)))).square().sum()


def meta(layer):
    torch.nn.Module.to(layer, "meta")
    return F.gelu(layer(images().to("meta"))).square().sum()


def fake(layer):
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        return F.gelu(layer(mode.from_tensor(images()))).square().sum()


def two_tensors(layer):
    return F.gelu(layer(TwoTensor(images(), images()))).square().sum()


def wrapper(layer):
    return Unwrapped.apply(F.gelu(layer(Wrapper(images()))).square().sum())


def renamed(layer):
    return F.gelu(layer(images((16, FEATURES)).as_subclass(Renamed))).square().sum().as_subclass(torch.Tensor)


def quantised(layer):
    x = torch.quantize_per_tensor(images((16, FEATURES)), 0.05, 0, torch.qint8)
    return F.gelu(layer(x.dequantize())).square().sum()


def fake_quantised(layer):
    return F.gelu(torch.fake_quantize_per_tensor_affine(layer(images()), 0.05, 0, -128, 127)).square().sum()


def onednn(layer):
    return F.relu(layer(images().to_mkldnn()).to_dense()).square().sum()


def distributed(layer):
    """A process group of one process, which a test opens."""
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    whole, rows = [torch.distributed.tensor.Replicate()], [torch.distributed.tensor.Shard(0)]
    weight, bias = (torch.distributed.tensor.DTensor.from_local(one, mesh, whole) for one in (layer.weight, layer.bias))
    x = torch.distributed.tensor.distribute_tensor(images((16, FEATURES)), mesh, rows)
    return F.gelu(F.linear(x, weight, bias)).to_local().square().sum()


def complex_numbers(layer):
    x = torch.complex(layer(images()), layer(images(seed=2)))
    return (torch.fft.fft(x) * x).abs().square().sum()


def negated(layer):
    x = torch.complex(layer(images()), layer(images(seed=2))).conj()
    return F.gelu(x.imag).square().sum()


def zero_dim(layer):
    return F.gelu(layer(images((16, FEATURES)))).mean().square().exp()


CASES = (
    Case("plain tensors", plain),
    Case("`torch.func.functional_call`", functional_call),
    Case("`torch.func.vmap` of operations", vmap, KEPT, "tensors within transforms of torch.func"),
    Case("`torch.func.vmap` of a decomposition", vmapped_qr, KEPT, "tensors within transforms of torch.func"),
    Case("`torch.func.vmap` of an ensemble (`stack_module_state`)", ensemble, KEPT, "tensors within transforms of torch.func"),
    Case("`torch.func.jvp`", jvp, KEPT, "tensors within transforms of torch.func"),
    Case("`torch.func.jacfwd`", jacfwd, KEPT, "tensors within transforms of torch.func"),
    Case("`torch.autograd.forward_ad`", dual),
    Case("`torch.func.grad`", func_grad, REFUSED),
    Case("`torch.func.vjp`", vjp, REFUSED),
    Case("`torch.func.jacrev`", jacrev, REFUSED),
    Case("`torch.func.hessian`", hessian, REFUSED),
    Case("nested, strided", nested, KEPT, "nested tensors"),
    Case("nested, jagged", jagged),
    Case("nested, jagged, in an attention", jagged_attention, KEPT, "tensors of the class NestedTensor"),
    Case("sparse COO, times a plain tensor", functools.partial(sparse, form=torch.Tensor.to_sparse), TRAINED, "sparse tensors"),
    Case(
        "sparse CSR, times a plain tensor",
        functools.partial(sparse, form=torch.Tensor.to_sparse_csr),
        TRAINED,
        "sparse tensors",
    ),
    Case("sparse BSR, and back", blocks),
    Case("sparse, trained", trained_sparse),
    Case("on the device meta", meta, KEPT, "tensors on the device meta"),
    Case("fake (`FakeTensorMode`)", fake, KEPT, "tensors of the class FakeTensor"),
    Case("DTensor", distributed),
    Case("subclasses that override functions only", renamed),
    Case("wrappers with `__torch_dispatch__` (TwoTensor)", two_tensors, KEPT, "tensors of the class TwoTensor"),
    Case("wrappers that do not say what they are made of", wrapper, KEPT, "tensors of the class Wrapper"),
    Case("quantised", quantised),
    Case("quantised and back (`fake_quantize`)", fake_quantised),
    Case("in oneDNN's layout (`to_mkldnn`)", onednn, KEPT, "tensors in oneDNN's layout"),
    Case("complex", complex_numbers, KEPT, "complex numbers"),
    Case("negated and conjugated views", negated),
    Case("of rank 0", zero_dim),
)
