"""Foreign models under every policy: the forward pass is as without, the gradient as near as measurements say."""

import csv
from pathlib import Path

import pytest
import torch
from actcodec.policies.catalog import POLICY_NAMES
from actcodec.policies.policy import CodecSpec
from actcodec.policies.recommended import ALIKE, families, measured, recommended
from actcodec.study.check import named_policy
from actcodec.study.foreign import FAMILIES
from actcodec.study.gradient_similarity import likeness
from actcodec.training.compression import LEAST_BYTES
from cdu_tools.errors import MissingToolError
from cdu_zoo import ZOO
from training_step import compressed_step, plain_step

pytestmark = pytest.mark.filterwarnings("ignore:actnn-L4 swaps", "ignore:vdnn moves")
TABLE = Path(__file__).parents[3] / "docs" / "evidence" / "results_families_models.csv"
#: Policies through which no gradient changes.
LOSSLESS = ("none", "brc", "cdma", "vdnn", "actnn-L0")
USABLE = [name for name in POLICY_NAMES if name != "actnn-L5" or torch.cuda.is_available()]
#: A model of each family, and policies of each kind, for every run of the tests.
SLICE = (
    *("timm.test_resnet", "timm.test_efficientnet", "timm.test_convnext", "timm.test_vit"),
    *("transformers.gpt2", "torch.UNet_batch_norm", "torch.LSTM"),
)
FEW = ("brc", "sfpr", "jpeg-gmc", "actnn-L2", "division")


def built(name):
    """A model with weights of seed 0, or no test where its library is missing."""
    torch.manual_seed(0)
    try:
        return ZOO[name].build()
    except MissingToolError as error:
        pytest.skip(str(error))


def assert_as_without(name, specs):
    """One step with each policy beside one without."""
    model, loss_of = built(name), lambda model: ZOO[name].loss(model, 0)
    with torch.no_grad():
        loss_of(model)  # some of transformers' models put hooks into themselves when they first run
    plain = plain_step(model, loss_of)
    states = dict(plain.model.named_buffers())
    for spec in specs:
        step = compressed_step(model, loss_of, named_policy(spec)[1], min_bytes=LEAST_BYTES)
        assert torch.equal(step.loss, plain.loss), spec
        assert all(torch.equal(buffer, states[key]) for key, buffer in step.model.named_buffers()), spec
        assert step.gradients.keys() == plain.gradients.keys()
        if spec.name in LOSSLESS:
            assert all(torch.equal(step.gradients[key], exact) for key, exact in plain.gradients.items()), spec
        pairs = [(exact, step.gradients[key]) for key, exact in plain.gradients.items()]
        found = likeness(*zip(*pairs, strict=True), [""] * len(pairs)).cosine
        # A gradient that is noise may have any cosine.
        stated = stated_cosine(spec, ZOO[name].family)
        assert 1 - found <= 2 * (1 - stated) + 1e-3, (spec, found, stated)


def stated_cosine(spec, family):
    """The lowest that was measured on the family."""
    same = CodecSpec(ALIKE.get(spec.name, spec.name), spec.options)
    (found,) = (one.families[family].cosine for one in measured() if one.policy == same)
    return found


@pytest.mark.parametrize("name", SLICE)
def test_some_policies_on_a_model_of_each_family(name):
    extra = (recommended(ZOO[name].family).policy,)
    assert_as_without(name, (*map(CodecSpec, FEW), *extra))


@pytest.mark.campaign
@pytest.mark.parametrize("name", ZOO)
def test_every_policy_on_every_model(name):
    assert_as_without(name, (*map(CodecSpec, USABLE), *(one.policy for one in measured() if one.policy.options)))


def test_the_zoo_is_large_and_of_all_families():
    assert len(ZOO) >= 60
    assert {ZOO[name].family for name in SLICE} == set(FAMILIES) == set(families())
    by_family = {family: [model for model in ZOO.values() if model.family == family] for family in FAMILIES}
    assert min(map(len, by_family.values())) >= 4
    assert {model.library for model in ZOO.values()} == {"torchvision", "timm", "transformers", "torch"}


def test_the_table_of_the_evidence_has_every_model():
    with TABLE.open(encoding="utf-8") as file:
        measured_on = {row["model"]: row["family"] for row in csv.DictReader(file)}
    assert measured_on == {name: model.family for name, model in ZOO.items()}


@pytest.mark.parametrize("name", SLICE)
def test_models_learn_from_their_batches(name):
    """The loss on batches falls while others are learnt from: there is something to learn in them."""
    model, loss = built(name), ZOO[name].loss
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    before = sum(loss(model, number).item() for number in range(4))
    for number in range(4, 36):
        optimizer.zero_grad()
        loss(model, number).backward()
        optimizer.step()
    assert sum(loss(model, number).item() for number in range(4)) < before
