"""The reference networks: built for their data, trained, and with compressed activations."""

import math

import pytest
import torch
from actcodec.study import data, experiment
from actcodec.study.networks import NETWORKS
from cdu_tools.errors import UserError


@pytest.fixture(scope="module")
def images():
    return {"digits": data.load("digits", limit=64), "photos": data.load("photos")}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ("resnet", "vit") else pytest.mark.campaign) for name in NETWORKS]
)
def test_trains(images, name):
    """The network improves in its task, every parameter takes part, and 8 bits per value change little."""
    dataset = images[NETWORKS[name].dataset]
    recipe = experiment.Recipe.usual(name, width=16, steps=20, batch=64)
    runs = {codec: experiment.train(recipe, dataset, codec, experiment.policy(codec), 0) for codec in ("none", "sfpr")}
    losses = {codec: run.losses for codec, run in runs.items()}
    if name == "vdsr":
        untrained = -10 * math.log10((dataset.test_inputs - dataset.test_targets).double().square().mean())
        assert runs["none"].score > untrained + 0.01
    else:
        assert losses["none"][-1] < 0.97 * losses["none"][0]
    assert runs["sfpr"].ratio > 2
    assert losses["sfpr"][0] == losses["none"][0]
    assert losses["sfpr"][3] == pytest.approx(losses["none"][3], rel=0.05)
    model = experiment.build_model(recipe, dataset)
    torch.autograd.backward(model(dataset.train_inputs[:8]).square().sum())
    # The last convolution of vdsr begins with zeros, through which no gradient passes.
    assert all(p.grad is not None and (name == "vdsr" or p.grad.any()) for p in model.parameters())


def test_vgg_has_every_kind_of_layer(images):
    model = experiment.build_model(experiment.Recipe.usual("vgg"), images["digits"])
    kinds = {type(module).__name__ for module in model.modules()}
    assert {"Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "Dropout", "Linear"} <= kinds


def test_patches_need_square_images_of_whole_patches(images):
    digits = images["digits"]
    narrow = data.Dataset("narrow", "", 10, *(part[..., :7] if part.ndim == 4 else part for part in (
        digits.train_inputs, digits.train_targets, digits.test_inputs, digits.test_targets)))  # fmt: skip
    with pytest.raises(UserError, match="square images of a multiple of 8 pixels, narrow has others"):
        experiment.build_model(experiment.Recipe.usual("vit"), narrow)


def test_recipe_is_the_networks_own_where_nothing_is_given():
    kind = NETWORKS["vit"]
    recipe = experiment.Recipe.usual("vit", width=48, depth=None)
    assert (recipe.width, recipe.depth, recipe.learning_rate) == (48, kind.depth, kind.learning_rate)
    assert isinstance(kind.optimizer(torch.nn.Linear(2, 2), 0.1), torch.optim.AdamW)
