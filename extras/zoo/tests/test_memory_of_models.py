"""Memory of the models of the zoo, beside the allocator's events."""

import pytest
import torch
from actcodec.saved.allocations import allocations
from actcodec.study.data import batches
from actcodec.study.live_storages import BACKWARD
from actcodec.study.memory import predict
from actcodec.study.memory_subject import of_zoo
from cdu_zoo import ZOO


@pytest.mark.parametrize(
    "name", ["torchvision.resnet18", "torchvision.mobilenet_v2", "timm.test_vit", "transformers.llama", "torch.UNet_batch_norm"]
)
def test_a_model_of_the_zoo_takes_what_is_predicted(name):
    torch.set_num_threads(1)
    foreign = ZOO[name]
    real = foreign.build()
    foreign.loss(real, 0).backward()
    real.zero_grad(set_to_none=True)
    kept = allocations(lambda: foreign.loss(real, 0)).kept
    peak = allocations(lambda: foreign.loss(real, 0).backward()).peak
    found = predict(of_zoo(foreign), on_cpu=True)
    assert found.kept == pytest.approx(kept, rel=0.001)
    assert found.step == pytest.approx(peak, rel=0.05)
    assert found.place.phase == BACKWARD


def test_twice_the_batch_keeps_twice_as_much():
    one, two = (predict(of_zoo(ZOO["timm.test_vit"]), count=count) for count in (8, 16))
    assert two.kept == pytest.approx(2 * one.kept, rel=0.01)
    assert two.state == one.state


def test_a_model_of_the_zoo_is_compiled_with_the_making_of_its_batches():
    batches._pieces.cache_clear()
    one = of_zoo(ZOO["transformers.distilbert"])
    found, later = predict(one, "compiled"), predict(one, "none")
    assert 0 < found.kept < later.kept
