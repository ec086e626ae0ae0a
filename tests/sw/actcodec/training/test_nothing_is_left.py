"""Tensors kept by a step are freed with its graph, by reference counting: the cycle collector may come gigabytes later."""

import gc
import warnings
import weakref

import actcodec
import pytest
import torch
from actcodec.policies.catalog import POLICY_NAMES, policy
from actcodec.saved.operations import metadata
from cdu_tools.errors import MissingToolError
from torch import nn
from torch.nn import functional as F

STEPS, WARM = 3, 1


class Kinds(nn.Module):
    """Maps, then tokens: convolution, normalisations, ReLU, a pool, both forms of attention, GELU written out, dropout."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.tokens, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 2, batch_first=True)
        self.project, self.wide, self.narrow = nn.Linear(16, 48), nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(2).mT
        y = self.tokens(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        query, key, value = (part.unflatten(2, (2, 8)).transpose(1, 2) for part in self.project(x).chunk(3, 2))
        x = x + F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        wide = self.wide(self.tokens(x))
        wide = 0.5 * wide * (1 + torch.tanh(0.8 * (wide + 0.044715 * wide**3)))
        return self.head(F.dropout(self.narrow(wide), 0.1).mean(1))


class Mark:
    """Lives as long as the node of the graph that has it."""


def graph(result):
    """All nodes from a result down."""
    found, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [following for following, _ in node.next_functions]
    return found


def step(model, codec, targets, harm=lambda node: None):
    """A training step; weak references to marks on the nodes of its graph."""
    with actcodec.compress_activations(model, codec):
        loss = F.cross_entropy(model(torch.randn(4, 3, 16, 16)), targets)
    marks = []
    for node in graph(loss):
        if node.name() != "torch::autograd::AccumulateGrad":  # the weight's, which lives as long
            mark = Mark()
            metadata(node)["mark"] = mark
            marks.append(weakref.ref(mark))
    harm(loss.grad_fn)
    model.zero_grad()
    loss.backward()
    return marks


def tensors():
    """Count the tensors created after the freeze."""
    return sum(isinstance(one, torch.Tensor) for one in gc.get_objects())


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_step_leaves_nothing(name):
    warnings.simplefilter("ignore")  # few bits, and missing devices
    try:
        model, codec = Kinds(), policy(name)
    except MissingToolError as error:
        pytest.skip(str(error))
    targets = torch.randint(4, (4,))
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        counts = []
        for _ in range(STEPS):
            marks = step(model, codec, targets)
            assert len(marks) > 40
            assert [mark() for mark in marks if mark() is not None] == []
            counts.append(tensors())
    finally:
        gc.enable()
    assert len(set(counts[WARM:])) == 1, counts


def test_a_graph_that_reaches_itself_is_found():
    """The loss's node is reached from an object that it holds."""
    marks = step(Kinds(), "none", torch.zeros(4, dtype=torch.int64), lambda node: metadata(node).update(itself=node))
    assert all(mark() is not None for mark in marks)
