"""Facts about a saved tensor are those that the tensor and the operation tell, and each is asked for once."""

import gc
import sys

import actcodec
import pytest
import torch
from actcodec.codecs import tensor_kinds
from actcodec.policies import catalog
from actcodec.saved import operations
from actcodec.saved.facts import Facts
from actcodec.saved.forms import BitForm
from actcodec.saved.layout import Layout
from actcodec.saved.operations import Operation, is_parameter
from torch import nn
from torch.nn import functional as F

#: Most calls of functions, in Python and in C, that a saved tensor may take more than without a context. They were 547 and 517
#: when every step of the decision asked the tensor anew.
MOST_CALLS = {"attention": 180, "convolutions": 155}


def views():
    x = torch.randn(4, 6)
    return {
        "whole": x,
        "transposed": x.t(),
        "part": x[1:, 2:],
        "expanded": x[:, None].expand(4, 3, 6),
        "sliding": x.flatten().unfold(0, 4, 2),
        "half": x.to(torch.bfloat16),
    }


@pytest.mark.parametrize("which", views())
def test_facts_are_what_the_tensor_says(which):
    x = views()[which]
    other = torch.randn(6)
    facts = Facts(x, Operation("mul", (x.detach(), other), {}, "mul"))
    assert facts.address == x.untyped_storage()._cdata
    assert facts.key == (x.untyped_storage()._cdata, x._version, x.dtype)
    assert facts.place == (x.storage_offset(), facts.layout)
    assert facts.layout == Layout(tuple(x.shape), tuple(x.stride()), x.dtype, x.device)
    assert facts.nbytes == (24 if which == "expanded" else x.numel()) * x.element_size()
    assert facts.is_argument
    assert not Facts(other * 2, facts.operation).is_argument
    assert not Facts(x, None).is_argument


def test_a_change_in_place_changes_the_key():
    x = torch.randn(4, 6)
    before = Facts(x, None).key
    x.add_(1)
    assert Facts(x, None).key != before


def test_equal_layouts_are_one_object_and_others_are_not():
    x = torch.randn(4, 6)
    assert Layout.of(x) is Layout.of(torch.zeros(4, 6))
    others = [x.t(), x[:, :3], x.double(), x.view(2, 12), torch.empty(4, 6, device="meta")]
    assert len({id(Layout.of(other)) for other in (x, *others)}) == 1 + len(others)


def test_an_operation_asks_its_arguments_once(monkeypatch):
    asked = []

    def kind_of(x):
        asked.append(x)
        return tensor_kinds.kind_of(x)

    x, w = torch.randn(4, 6), torch.randn(5, 6)
    sparse = torch.eye(3).to_sparse()
    operation = Operation("linear", (x, w, [sparse]), {}, "linear")
    monkeypatch.setattr(operations, "kind_of", kind_of)
    for _ in range(3):
        assert operation.kinds == (tensor_kinds.SPARSE,)
        assert operation.storages == (x.untyped_storage()._cdata, w.untyped_storage()._cdata, None)
    assert len(asked) == 3


def test_parameters_are_told_as_torch_tells_them():
    class Own(torch.Tensor):
        pass

    x = torch.randn(3)
    marked = torch.randn(3)
    marked._is_param = True
    subclass = torch.randn(3).as_subclass(Own)
    candidates = (x, marked, nn.Parameter(x), nn.Buffer(x), subclass, nn.Parameter(subclass), nn.UninitializedParameter())
    for candidate in candidates:
        assert is_parameter(candidate) == isinstance(candidate, nn.Parameter)


@pytest.mark.parametrize("zeros", [0, 63, 64, 200])
@pytest.mark.parametrize("last", [2.0, -2.0, 3.0, -0.0, float("nan"), float("inf")])
def test_a_mask_is_told_whatever_its_first_values_are(zeros, last):
    """The first values alone never make a tensor a mask, and never keep a mask from being one."""
    x = torch.tensor([0.0] * zeros + [2.0, 0.0] * 80 + [last]).view(1, -1)
    form = BitForm.of(x)
    if last == 2.0:
        assert form is not None
        assert torch.equal(form.tensor(), x)
    else:
        assert form is None


@pytest.mark.parametrize("other", [-1.0, float("-inf"), float("inf"), torch.finfo(torch.float32).min])
def test_the_other_value_of_a_mask_may_be_any(other):
    x = torch.tensor([[0.0, other, 0.0, 0.0, other] * 30])
    form = BitForm.of(x)
    assert form.nbytes == -(-x.numel() // 8) + 4
    assert torch.equal(form.tensor(), x)
    x[0, -1] = 1.0
    assert BitForm.of(x) is None


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out, self.up, self.down = (
            nn.LayerNorm(16),
            nn.Linear(16, 48),
            nn.Linear(16, 16),
            nn.Linear(16, 64),
            nn.Linear(64, 16),
        )

    def forward(self, x):
        q, k, v = (y.view(2, 8, 4, 4).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, 8, 16))
        return x + self.down(F.gelu(self.up(self.norm(x))))


def convolutions():
    return nn.Sequential(*(nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()) for _ in range(8)))


NETWORKS = {
    "attention": (lambda: nn.Sequential(*(Attention() for _ in range(4))), (2, 8, 16)),
    "convolutions": (convolutions, (2, 4, 8, 8)),
}


def calls_of(step):
    """Number of calls of functions, in Python and in C, that ``step`` makes."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()
    before = sys.getprofile()
    sys.setprofile(see)
    try:
        step()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


@pytest.mark.parametrize("which", NETWORKS)
def test_work_for_a_saved_tensor_is_bounded(which):
    """Processor time of the hooks, counted in calls, which do not depend on the machine."""
    make, shape = NETWORKS[which]
    model, x = make(), torch.randn(shape, requires_grad=True)
    context = actcodec.compress_activations(model, catalog.policy("none"))
    saved = []

    def plain():
        model(x).sum().backward()

    def compressed():
        with context:
            loss = model(x).sum()
        loss.backward()

    with torch.autograd.graph.saved_tensors_hooks(lambda y: saved.append(y) or y, lambda y: y):
        model(x)
    for step in (plain, compressed, compressed):
        step()
    assert (calls_of(compressed) - calls_of(plain)) / len(saved) <= MOST_CALLS[which]
