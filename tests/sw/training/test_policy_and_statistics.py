"""Which tensor gets what, and whether the account of bytes is right."""

import actcodec
import pytest
import torch
from actcodec.codecs import codec
from actcodec.models import ResNet, Vdsr
from actcodec.training import CodecSpec, SavedTensor, jpeg_act_policy, policy
from cdu_spec.errors import UserError
from codecs_for_tests import ExactCodec
from torch import nn
from torch.nn import functional as F


def saved(producer, consumer, shape, dtype=torch.float32, module=""):
    return SavedTensor(producer, consumer, shape, dtype, module)


MAP = (4, 8, 16, 16)


@pytest.mark.parametrize(
    ("tensor", "want"),
    [
        (saved("conv", "norm", MAP), "jpeg-act"),
        (saved("sum", "conv", MAP), "jpeg-act"),
        (saved("input", "conv", MAP), "jpeg-act"),
        (saved("relu", "relu", MAP), "brc"),
        (saved("relu", "conv", MAP), "sfpr+zvc"),
        (saved("relu", "pool", MAP), "sfpr+zvc"),
        (saved("pool", "conv", MAP), "sfpr+zvc"),
        (saved("relu", "dropout", MAP), "sfpr+zvc"),
        (saved("conv", "norm", (4, 8, 4, 4)), "sfpr"),
        (saved("conv", "norm", (1, 1, 7, 16)), "sfpr"),
        (saved("linear", "norm", (4, 8)), "sfpr"),
        (saved("softmax", "loss", (4, 8)), None),
        (saved("conv", "norm", MAP, torch.float64), None),
    ],
)
def test_the_table_of_jpeg_act(tensor, want):
    chosen = jpeg_act_policy().choose(tensor)
    assert (chosen and chosen.name) == want


@pytest.mark.parametrize(
    ("tensor", "by_division", "by_actnn"),
    [
        (saved("conv", "norm", MAP), "division", "actnn"),
        (saved("relu", "relu", MAP), "brc", "brc"),
        (saved("relu", "conv", MAP), "division", "actnn"),
        (saved("pool", "conv", (4, 8, 7, 7)), "division", "actnn"),
        (saved("conv", "norm", (4, 8, 4, 4)), "actnn", "actnn"),
        (saved("linear", "norm", (4, 8)), "actnn", "actnn"),
        (saved("softmax", "loss", (4, 8)), None, None),
    ],
)
def test_the_tables_of_division_and_actnn(tensor, by_division, by_actnn):
    for name, want in (("division", by_division), ("actnn", by_actnn)):
        chosen = policy(name, bits=4).choose(tensor)
        assert (chosen and chosen.name) == want
        assert getattr(chosen, "bits", 4) == 4


def test_signs_serve_only_relu():
    chosen = actcodec.Policy([actcodec.Rule("brc")], default="sfpr")
    assert chosen.choose(saved("relu", "conv", MAP)).name == "sfpr"
    assert chosen.choose(saved("relu", "relu", MAP)).name == "brc"


def test_rules_match_in_order_by_module_operation_dtype_and_rank():
    rules = [
        actcodec.Rule("exact", module="blocks.0.*"),
        actcodec.Rule("sfpr", dtypes=(torch.bfloat16,)),
        actcodec.Rule(CodecSpec("jpeg-act", {"dqt": "optH"}), producer=("conv",), consumer=("norm",), min_rank=4),
    ]
    p = actcodec.Policy(rules, default=codec("sfpr+zvc"))
    assert p.choose(saved("conv", "norm", MAP, module="blocks.0.bn1")) is None
    assert p.choose(saved("conv", "norm", MAP, torch.bfloat16)).name == "sfpr"
    assert p.choose(saved("conv", "norm", MAP)).dqt == "optH"
    assert p.choose(saved("conv", "conv", MAP)).name == "sfpr+zvc"


def test_codec_factory_and_schedule_reach_every_codec():
    made = []

    def factory(name, **options):
        made.append((name, options))
        return codec(name, **options)

    p = policy("jpeg-act", factory, dqt="optLH", S=1.0)
    assert ("jpeg-act", {"dqt": "optLH", "S": 1.0}) in made
    assert ("sfpr", {"S": 1.0}) in made
    dense = p.choose(saved("conv", "norm", MAP))
    assert dense.table == "optL"
    p.set_epoch(5)
    assert dense.table == "optH"


@pytest.mark.parametrize(
    ("which", "options"), [("jpeg", {}), ("jpeg-act", {"dq": 1}), ("none", {"S": 1.0}), (3, {}), ("jpeg-act", {"dqt": "x"})]
)
def test_bad_choices_are_one_sentence(which, options):
    with pytest.raises(UserError) as caught, actcodec.compress_activations(nn.Module(), which, **options):
        pass
    assert "\n" not in str(caught.value)


def independent_listing(model, run):
    """Distinct saved activations, found with plain hooks and held alive so that addresses stay distinct."""
    fixed = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    held, seen = [], {}

    def pack(x):
        held.append(x.detach())
        address = x.untyped_storage().data_ptr()
        # nn.Linear saves weight.t(), which shares the storage of the weight.
        if x.is_floating_point() and x.ndim >= 2 and address not in fixed:
            seen[(x.data_ptr(), x._version, tuple(x.shape), x.stride())] = x.numel() * x.element_size()
        return held[-1]

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        run()
    return seen


@pytest.mark.parametrize("inplace", [False, True])
def test_statistics_agree_with_an_independent_listing(inplace):
    model = ResNet(3, 10, width=8, depth=2)
    for module in model.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = inplace
    x, labels = torch.randn(4, 3, 16, 16), torch.tensor([0, 1, 2, 3])

    def run():
        F.cross_entropy(model(x), labels)

    listing = independent_listing(model, run)
    with actcodec.compress_activations(model, "jpeg-act") as stats:
        run()
    assert len(stats.records) == len(listing)
    assert stats.bytes_original == sum(listing.values())
    assert sum(row["bytes_original"] for row in stats.tensors) == stats.bytes_original


def test_bytes_kept_are_those_of_the_streams():
    kept = []

    def factory(name, **options):
        made = codec(name, **options)
        compress = made.compress

        def recording(x):
            packed = compress(x)
            kept.append(len(packed.to_bytes()))
            return packed

        made.compress = recording
        return made

    model = Vdsr(1, 8, 4)
    with actcodec.compress_activations(model, "jpeg-act", codec_factory=factory) as stats:
        model(torch.rand(2, 1, 16, 16))
    replaced = sum(len(r.saved_by) > 1 for r in stats.records)  # bits first, values later
    assert replaced == 3
    assert len(kept) == len(stats.records) + replaced
    bits = codec("brc").compress(torch.rand(2, 8, 16, 16)).nbytes
    assert stats.bytes_compressed == sum(kept) - replaced * bits


def test_table_and_error():
    model = ResNet(3, 10, width=8, depth=1)
    with actcodec.compress_activations(model, "jpeg-act", measure_error=True) as stats:
        model(torch.randn(4, 3, 16, 16))
    rows = {(row["name"], row["op"]): row for row in stats.tensors}
    conv = rows[("bn", "conv")]
    assert conv["codec"] == "jpeg-act"
    assert 0 < conv["relative_error"] < 0.2
    assert rows[("blocks.0.relu1", "relu")]["codec"] == "sfpr+zvc"
    assert "blocks.0.relu1" in stats.table()
    assert stats.table().splitlines()[-1].split()[-1] == f"{stats.ratio:.2f}"


def test_the_model_is_not_changed():
    model = ResNet(1, 10, width=8)
    hooks = [(dict(m._forward_hooks), dict(m._forward_pre_hooks), sorted(vars(m))) for m in model.modules()]
    with actcodec.compress_activations(model, "jpeg-act"):
        model(torch.randn(2, 1, 16, 16))
        inside = [(dict(m._forward_hooks), dict(m._forward_pre_hooks), sorted(vars(m))) for m in model.modules()]
    assert inside == hooks


def test_gradients_with_brc_are_exact_and_with_jpeg_act_close():
    torch.manual_seed(1)
    model = ResNet(1, 10, width=8)
    x, labels = torch.randn(8, 1, 16, 16), torch.arange(8)

    def gradient(which):
        model.zero_grad()
        with actcodec.compress_activations(model, which):
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters()])

    exact = gradient("none")
    assert torch.equal(gradient("brc"), exact)
    assert torch.equal(gradient(ExactCodec()), exact)
    assert 0 < (gradient("jpeg-act") - exact).norm() / exact.norm() < 0.25  # noise is the hardest input
