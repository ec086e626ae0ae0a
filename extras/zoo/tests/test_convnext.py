"""ConvNeXt V2, whose 2-norms take errors of their arguments."""

import pytest
import torch
from cdu_zoo import ZOO
from training_step import compressed_step, gradient_error, plain_step


@pytest.mark.parametrize("name", ["timm.convnextv2_atto", "transformers.convnextv2"])
def test_convnext_v2_has_the_ratio_of_its_family(name):
    foreign = ZOO[name]
    torch.manual_seed(0)
    model = foreign.build()
    plain = plain_step(model, lambda one: foreign.loss(one, 0))
    step = compressed_step(model, lambda one: foreign.loss(one, 0), "transformer")
    assert step.stats.ratio_of_everything > 12
    assert gradient_error(step, plain) < 0.14  # a cosine of 0.99
