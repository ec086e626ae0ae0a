"""Torch's transforms and kinds of tensors, by the recommended policies: compressed, kept exactly and named, or one sentence."""

import csv
import warnings
from pathlib import Path

import actcodec
import pytest
import torch
import torch.distributed as dist
from actcodec.codecs import CODEC_NAMES, codec_options
from actcodec.codecs.tensor_kinds import kind_of
from actcodec.policies.recommended import families, recommended
from actcodec.training.hooks import NO_TRANSFORMS
from cdu_tools.errors import UserError
from tensor_kinds_for_tests import CASES, FEATURES, KEPT, REFUSED, TRAINED, Renamed, Wrapper, images
from torch import nn
from torch._subclasses import FakeTensorMode

#: Name and options of policies; a gradient of few bits is off further.
POLICIES = {"none": ("none", {}), "sfpr": ("sfpr", {})} | {
    one.text: (one.policy.name, one.policy.options) for one in map(recommended, families())
}
LEAST_COSINE = 0.98
EXACT_FORMS = ("exact", "bits", "shape")

pytestmark = pytest.mark.filterwarnings(
    "ignore:The PyTorch API of nested tensors", "ignore:Sparse .* tensor support is in beta"
)


@pytest.fixture(scope="module", autouse=True)
def process_group(tmp_path_factory):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path_factory.mktemp('group')}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def layer_of():
    torch.manual_seed(0)
    return nn.Linear(FEATURES, FEATURES)


def gradient(layer, loss):
    loss.backward()
    return torch.cat([parameter.grad.flatten() for parameter in layer.parameters()])


@pytest.mark.parametrize("case", CASES, ids=[case.row for case in CASES])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_kind_by_every_policy(case, policy):
    name, options = POLICIES[policy]
    layer, alone = layer_of(), layer_of()
    context = actcodec.compress_activations(layer, name, compress_loss=True, **options)
    if case.outcome == REFUSED:
        with pytest.raises(UserError) as said, context:
            case.step(layer)
        assert str(said.value) == NO_TRANSFORMS
        assert not context.enabled
        return
    with context as stats:
        loss = case.step(layer)
    got, expected = gradient(layer, loss), gradient(alone, case.step(alone))
    if not expected.is_meta and kind_of(expected) is None:
        assert torch.cosine_similarity(got.double(), expected.double(), 0) > LEAST_COSINE
        assert name != "none" or torch.equal(got, expected)
    coded = [record for record in stats.records if record.codec not in EXACT_FORMS]
    if case.kind:
        assert stats.not_counted[case.kind] > 0
        assert case.kind in stats.table()
    if name != "none":
        assert coded or case.outcome == KEPT
    assert name != "none" or not coded


def test_the_table_has_every_kind():
    """docs/user/plugin_tensor_kinds.csv: rows, results, names."""
    with (Path(__file__).parents[4] / "docs" / "user" / "plugin_tensor_kinds.csv").open(encoding="utf-8") as file:
        rows = [tuple(row) for row in csv.reader(file)]
    shown = {TRAINED: "compressed", KEPT: "kept exactly", REFUSED: "refused"}
    expected = [(case.row.replace("`", ""), shown[case.outcome], case.kind) for case in CASES if case.row != CASES[0].row]
    assert rows[1:] == expected


def _kinds():
    x = torch.randn(4, FEATURES)
    yield "nested", torch.nested.nested_tensor([x, x[:2]])
    yield "jagged", torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged)
    yield "COO", x.to_sparse()
    yield "CSR", x.to_sparse_csr()
    yield "CSC", x.to_sparse_csc()
    yield "BSR", x.to_sparse_bsr((2, 2))
    yield "BSC", x.to_sparse_bsc((2, 2))
    yield "meta", x.to("meta")
    yield "fake", FakeTensorMode().from_tensor(x)
    yield "wrapper", Wrapper(x)
    yield "quantised", torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    yield "quantised by channel", torch.quantize_per_channel(x, torch.ones(4), torch.zeros(4), 0, torch.qint8)
    yield "oneDNN", x.to_mkldnn()
    yield "functional", torch._to_functional_tensor(x)
    yield "zeros", torch._efficientzerotensor((4, FEATURES))
    yield "complex", x.to(torch.complex64)
    yield "rank 0", x.sum()
    yield "float64", x.double()
    yield "empty", x[:0]


#: Copies of the tensor's own memory take more kinds of them.
TAKES_ALL = ("none",)


@pytest.mark.parametrize("kind", [name for name, _ in _kinds()])
@pytest.mark.parametrize("name", CODEC_NAMES)
def test_codecs_refuse_in_one_sentence(name, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = dict(_kinds())[kind]
    if name in TAKES_ALL and "quantised" not in kind:
        assert actcodec.codec(name).compress(x).nbytes >= 0
        return
    with pytest.raises(UserError, match=r"^cannot compress .*: \S+"):
        actcodec.codec(name).compress(x)


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("name", CODEC_NAMES)
def test_negative_views_and_subclasses_are_their_values(name, backend):
    """``z.conj().imag`` looks at memory that holds the values with the other sign."""
    if backend != "torch" and "backend" not in codec_options(name):
        pytest.skip("has no backends")
    options = {} if backend == "torch" else {"backend": backend}
    negative = torch.view_as_complex(images((2, 3, 8, 8, 2))).conj().imag
    assert negative.is_neg()
    plain = negative.resolve_neg().clone()
    results = []
    for x in (negative, plain, plain.as_subclass(Renamed)):
        codec = actcodec.codec(name, **options)
        results.append(torch.as_tensor(codec.decompress(codec.compress(x))).as_subclass(torch.Tensor))
    assert all(torch.equal(one, results[1]) for one in results)
