"""torchvision's own ResNet, VGG and DenseNet, as they are."""

import pytest
import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.training import Policy
from saved_activations import independent_listing
from torch import nn
from torch.nn import functional as F
from training_step import assert_trains, codecs_of, compressed_step, eight_bits, gradient_error, plain_step

LABELS = torch.tensor([3, 7])


def resnet(models):
    return models.ResNet(models.resnet.BasicBlock, [2, 2, 2, 2], num_classes=10)


def vgg(models, batch_norm=True):
    features = models.vgg.make_layers([16, "M", 32, "M", 64, 64, "M", 64, "M"], batch_norm=batch_norm)
    with torch.device("meta"):  # 120 million weights, most of them for 1000 classes
        model = models.VGG(nn.Identity(), num_classes=10)
    model.features = features
    model.classifier = nn.Sequential(nn.Linear(64 * 7 * 7, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 10))
    return model


def vgg_without_norm(models):
    return vgg(models, batch_norm=False)


def densenet(models):
    return models.DenseNet(8, (2, 2, 2), 16, bn_size=2, drop_rate=0.1, num_classes=10)


def loss_of(model):
    return F.cross_entropy(model(torch.randn(2, 3, 64, 64)), LABELS)


MODELS = {"resnet18": resnet, "vgg_bn": vgg, "vgg": vgg_without_norm, "densenet": densenet}


@eight_bits
@pytest.mark.parametrize("name", MODELS)
def test_gradient_is_close_and_bytes_are_counted(torchvision, name, which, options, bound):
    model = MODELS[name](torchvision.models)
    step = assert_trains(model, loss_of, which, options, bound, least_ratio=3.5)
    assert codecs_of(step.stats, op="softmax") == {"loss"}
    assert {row["op"] for row in step.stats.tensors if row["codec"] in ("exact", "loss")} == {"softmax"}
    torch.manual_seed(1)
    listing = independent_listing(model, lambda: loss_of(model))
    assert step.stats.bytes_original == sum(listing.values())


@pytest.mark.parametrize("which", POLICY_NAMES)
def test_every_policy_trains_a_resnet(torchvision, which, recwarn):
    if which == "actnn-L5" and not torch.cuda.is_available():
        pytest.skip("actnn-L5 is an error without CUDA, tested with the levels")
    model = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10)
    step = compressed_step(model, loss_of, which)
    first, last = step.gradients["conv1.weight"], step.gradients["fc.weight"]
    assert first.abs().sum() > 0
    assert last.abs().sum() > 0
    reference = plain_step(model, loss_of)
    if {row["codec"] for row in step.stats.tensors} <= {"exact", "loss", "brc", "bits"}:
        assert gradient_error(step, reference) == 0


def test_what_resnets_error_is_made_of(torchvision):
    """SFPR alone: values that round to zero lose ReLU's gradient, the saturating scale does the rest."""
    model = resnet(torchvision.models)
    reference = plain_step(model, loss_of)
    errors = {
        (scale, signs): gradient_error(compressed_step(model, loss_of, "sfpr", S=scale, keep_signs=signs), reference)
        for scale in (1.125, 1.0)
        for signs in (False, True)
    }
    assert errors[1.0, True] < 0.03
    assert errors[1.0, True] < errors[1.125, True] < 0.08
    assert errors[1.125, False] > 3 * errors[1.125, True]
    assert errors[1.0, False] > 3 * errors[1.0, True]


def test_densenets_own_checkpoints(torchvision):
    """``memory_efficient=True`` recomputes parts (S21), whose inputs are exact."""
    model = torchvision.models.DenseNet(8, (2, 2), 16, bn_size=2, num_classes=10, memory_efficient=True)
    step = compressed_step(model, loss_of, "sfpr", S=1.0, keep_signs=True)
    assert gradient_error(step, plain_step(model, loss_of)) < 0.04
    assert any(row["codec"] == "exact" and row["op"] == "pool" for row in step.stats.tensors)


def mobilenet(models):
    return models.MobileNetV2(num_classes=10, width_mult=0.25, dropout=0.0)


def test_mobilenet_keeps_one_bit_for_relu6(torchvision):
    """Its ReLU6 are linear between 0 and 6 and nowhere else; the next layer saves their result, they save their input."""
    model = mobilenet(torchvision.models)
    reference = plain_step(model, loss_of)
    step = compressed_step(model, loss_of, Policy(()))
    assert gradient_error(step, reference) == 0
    masks = [record for record in step.stats.records if record.saved_by == ("hardtanh",)]
    assert len(masks) == sum(isinstance(module, nn.ReLU6) for module in model.modules())
    assert {record.codec for record in masks} == {"bits"}
    for record in masks:
        values = record.bytes_original // 4
        assert values / 8 < record.bytes_compressed <= values / 8 + 9
    share = sum(record.bytes_original for record in masks) / step.stats.bytes_original
    assert 0.25 < share < 0.4


@pytest.mark.parametrize(
    ("which", "options", "bound", "ratio"), [("sfpr", {"S": 1.0}, 0.1, 5.0), ("actnn-L2", {"bits": 4}, 1.0, 9.0)]
)
def test_mobilenets_gradient_is_close(torchvision, which, options, bound, ratio):
    """Were the values of ReLU6's input rounded, the errors would be 0.4 and 1.2, the ratios 3.9 and 7.8."""
    assert_trains(mobilenet(torchvision.models), loss_of, which, options, bound, ratio)
