"""Launches and questions of a step that repeats the one before: bounds, and no question for some policies."""

import pytest
import torch
from actcodec import compress_activations
from actcodec.backends.triton.answers import Answer
from actcodec.policies import catalog
from actcodec.study.launches import LaunchCounter, QuestionError, step_count
from blocks_and_batch import case
from torch import nn


@pytest.mark.parametrize("network", ["convolutions", "attention"])
@pytest.mark.parametrize(
    ("policy", "launches", "questions"),
    [("none", 60, 0), ("sfpr", 20, 0), ("sfpr+zvc", 20, 0), ("jpeg-act", 20, 0), ("jpeg-gmc", 70, 6)],
)
def test_bounds_per_tensor(policy, launches, questions, network):
    model, loss = case(network)
    options = {"backend": "native"} if "backend" in catalog.policy_options(policy) else {}
    found = step_count(model, catalog.policy(policy, **options), loss)
    assert found.coded > 5 or policy == "none"
    assert found.questions <= questions, found.forward.questions + found.backward.questions
    assert found.launches <= launches


@pytest.mark.parametrize("network", ["convolutions", "attention"])
@pytest.mark.parametrize("policy", ["sfpr", "sfpr+zvc", "jpeg-act"])
def test_a_repeated_step_asks_nothing_where_that_is_forbidden(policy, network):
    model, loss = case(network)
    compression = compress_activations(model, policy, backend="native")
    with compression:
        first = loss()
    first.backward()
    expected = [x.grad.clone() for x in model.parameters()]
    model.zero_grad()
    if network == "convolutions":
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.reset_running_stats()
    with LaunchCounter(forbid=True), compression:
        second = loss()
    with LaunchCounter(forbid=True):
        second.backward()
    assert torch.equal(first, second)
    assert all(torch.equal(x.grad, grad) for x, grad in zip(model.parameters(), expected, strict=True))


def test_a_question_is_found_and_refused():
    layer = nn.Linear(8, 8)
    x = torch.randn(64, 8)
    with LaunchCounter() as counter:
        assert (x > 0).any().item()
        x[x > 0].sum()
        x.tolist()
    assert counter.counted.questions.total() == 3
    assert counter.counted.launches > 3
    # The golden model asks whether all values are finite.
    compression = compress_activations(layer, "sfpr", backend="torch")
    with pytest.raises(QuestionError, match=r"\w+:\d+ asks for a value on the host"), LaunchCounter(forbid=True), compression:
        layer(x)


def test_an_answer_is_a_question_unless_the_device_has_work_meanwhile():
    numbers = torch.tensor([3, 4])
    with LaunchCounter(forbid=True) as counter:
        late = Answer(numbers)
        numbers + 1
        assert late.read() == [3, 4]
    assert counter.counted.questions.total() == 0
    with LaunchCounter() as counter:
        assert Answer(numbers).read() == [3, 4]
    assert counter.counted.questions.total() == 1
    with LaunchCounter(forbid=True), pytest.raises(QuestionError):
        Answer(numbers).read()
