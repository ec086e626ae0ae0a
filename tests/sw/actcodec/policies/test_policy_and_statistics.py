"""Policies choose a form for each tensor, and statistics count its bytes."""

import actcodec
import pytest
import torch
from actcodec.codecs import codec
from actcodec.study.models import ResNet, Vdsr
from actcodec.training import CodecSpec, Policy, Rule, SavedTensor, jpeg_act_policy, policy
from cdu_tools.errors import UserError
from codecs_for_tests import ExactCodec
from saved_activations import independent_listing
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


def test_codec_jpeg_gmc_keeps_fewer_bytes_for_the_same_reconstruction():
    """In the place of jpeg-act, with the options of jpeg-act, the gradients are those of jpeg-act, to the last bit."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))
    x = F.interpolate(torch.randn(8, 3, 8, 8), 32, mode="bilinear")
    gradients, kept = [], []
    for name in ("jpeg-act", "jpeg-gmc"):
        model.zero_grad()
        rules = [Rule("brc", ("relu",), ("relu",)), Rule("sfpr+zvc", ("relu",))]
        chosen = Policy(rules, CodecSpec(name, {"dqt": "optL", "rec": 1 / 4, "S": 1.0}))
        with actcodec.compress_activations(model, chosen) as stats:
            model(x).square().mean().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        kept.append(stats.bytes_compressed)
        assert any(record["codec"] == name for record in stats.tensors)
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
    assert kept[1] < kept[0]


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


@pytest.mark.parametrize(
    ("tensor", "by_gist", "by_cdma"),
    [
        (saved("conv", "norm", MAP), "gist", None),
        (saved("sum", "conv", MAP), "gist", None),
        (saved("input", "conv", MAP), "gist", None),
        (saved("relu", "relu", MAP), "brc", "cdma"),
        (saved("relu", "conv", MAP), "gist-csr", "cdma"),
        (saved("relu", "dropout", MAP), "gist-csr", "cdma"),
        (saved("pool", "conv", (4, 8, 7, 7)), "gist-csr", "cdma"),
        (saved("conv", "norm", (4, 8, 4, 4)), "gist", None),
        (saved("relu", "linear", (4, 8)), "gist", None),
        (saved("softmax", "loss", (4, 8)), None, None),
        (saved("conv", "norm", MAP, torch.float64), None, None),
    ],
)
def test_the_tables_of_gist_and_cdma(tensor, by_gist, by_cdma):
    for name, options, want in (("gist", {"dpr": "fp8"}, by_gist), ("cdma", {}, by_cdma)):
        chosen = policy(name, **options).choose(tensor)
        assert (chosen and chosen.name) == want
        assert getattr(chosen, "dpr", "fp8") == "fp8"


@pytest.mark.parametrize(
    ("tensor", "by_bf16", "by_rows"),
    [
        (saved("conv", "norm", MAP), "bf16", "int8-rows"),
        (saved("relu", "relu", MAP), "brc", "brc"),
        (saved("relu", "linear", (4, 8)), "bf16", "int8-rows"),
        (saved("conv", "norm", MAP, torch.float16), None, "int8-rows"),
        (saved("conv", "norm", MAP, torch.float64), None, None),
        (saved("softmax", "matmul", (4, 8)), None, None),
    ],
)
def test_storage_in_fewer_bits(tensor, by_bf16, by_rows):
    for name, want in (("bf16", by_bf16), ("int8-rows", by_rows)):
        chosen = policy(name).choose(tensor)
        assert (chosen and chosen.name) == want


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without CUDA")
def test_vdnn_says_that_nothing_moves_on_the_cpu():
    with pytest.warns(UserWarning, match="nothing moves"):
        chosen = policy("vdnn")
    assert chosen.choose(saved("conv", "norm", MAP)) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_vdnn_trains_from_host_memory():
    model, x = ResNet(1, 10, width=8).cuda(), torch.randn(4, 1, 16, 16).cuda()
    gradients = []
    for name in ("none", "vdnn"):
        model.zero_grad()
        with actcodec.compress_activations(model, name) as stats:
            loss = model(x).square().sum()
        loss.backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert stats.bytes_compressed == stats.bytes_original
    assert any(record.codec == "vdnn" for record in stats.records)
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


def test_cdma_changes_no_gradient_and_gist_few():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten())
    x = torch.randn(8, 1, 16, 16)

    def gradient(which, **options):
        model.zero_grad()
        with actcodec.compress_activations(model, which, **options) as stats:
            loss = model(x).square().sum()
        loss.backward()
        return torch.cat([parameter.grad.flatten() for parameter in model.parameters()]), stats

    exact, without = gradient("none")
    same, stats = gradient("cdma")
    assert torch.equal(exact, same)
    assert stats.ratio > without.ratio == 1
    errors = [float((gradient("gist", dpr=dpr)[0] - exact).norm() / exact.norm()) for dpr in ("fp16", "fp10", "fp8")]
    assert 0 < errors[0] < 1e-3 < errors[1] < errors[2] < 0.1


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
    ("which", "options"),
    [
        ("jpeg", {}),
        ("jpeg-act", {"dq": 1}),
        ("none", {"S": 1.0}),
        ("cdma", {"S": 1.0}),
        ("gist", {"bits": 8}),
        (3, {}),
        ("jpeg-act", {"dqt": "x"}),
    ],
)
def test_bad_choices_are_one_sentence(which, options):
    with pytest.raises(UserError) as caught, actcodec.compress_activations(nn.Module(), which, **options):
        pass
    assert "\n" not in str(caught.value)


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
    headline, *_, activations, others = stats.table().splitlines()
    assert headline == stats.headline
    assert headline.endswith(f"ratio of everything {stats.ratio_of_everything:.2f}")
    assert str(stats) == stats.table()
    assert repr(stats) == f"<Statistics: {headline}>"
    assert activations.split()[0] == "activations"
    assert activations.split()[-1] == f"{stats.ratio:.2f}"
    assert others.startswith("not counted, in bytes: ")


def test_a_tensor_that_is_computed_again_has_no_ratio():
    """Policy ``transformer`` keeps nothing of the result of an activation: it computes it again from the input."""
    model, x = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)), torch.randn(32, 64)
    with actcodec.compress_activations(model, "transformer") as stats:
        loss = model(x).square().sum()
    loss.backward()
    (row,) = [row for row in stats.tensors if not row["bytes_compressed"]]
    assert (row["name"], row["op"], row["ratio"]) == ("3", "gelu", None)
    assert [line.split()[-2:] for line in str(stats).splitlines() if " gelu " in line] == [["-", "-"]]
    found = actcodec.study.diagnose(model, lambda: model(x).square().sum(), "transformer")
    assert [tensor.ratio for tensor in found.tensors].count(None) == 1
    assert " gelu " in found.table()


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
