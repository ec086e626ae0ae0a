"""Contexts within each other and beside torch's own, left in any order."""

import contextlib
import gc
import itertools

import actcodec
import pytest
import torch
from cdu_tools.errors import UserError
from context_steps import gradient, loss_of, network, stacks
from torch.autograd.graph import save_on_cpu
from torch.overrides import TorchFunctionMode


class Packs:
    """Nested contexts: only the statistics of the innermost enabled one grow."""

    def __init__(self, count):
        self.model = network()
        self.contexts = [actcodec.compress_activations(self.model, "sfpr") for _ in range(count)]
        self.entered = []  # (context, its statistics), the innermost last
        self.all = []  # statistics

    def enter(self, number):
        context = self.contexts[number]
        self.entered.append((context, context.enable()))
        self.all.append(context.statistics)

    def leave(self, number):
        context = self.contexts[number]
        context.disable()
        last = max(place for place, (entered, _) in enumerate(self.entered) if entered is context)
        del self.entered[last]

    def check(self):
        before = [len(one.records) for one in self.all]
        loss = loss_of(self.model)
        grown = [one for one, count in zip(self.all, before, strict=True) if len(one.records) > count]
        assert grown == [statistics for _, statistics in self.entered[-1:]]
        assert gradient(self.model, loss).isfinite().all()


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_contexts_are_left_in_any_order(order):
    packs = Packs(3)
    for number in range(3):
        packs.enter(number)
    for number in order:
        packs.check()
        packs.leave(number)
    packs.check()


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_of_entries_and_exits(seed):
    """One object within itself included: its entries end in the reverse order."""
    choose = torch.Generator().manual_seed(seed)
    packs = Packs(3)
    for _ in range(24):
        number = int(torch.randint(3, (), generator=choose))
        if packs.contexts[number].enabled and int(torch.randint(2, (), generator=choose)):
            packs.leave(number)
        else:
            packs.enter(number)
        assert [one.enabled for one in packs.contexts] == [
            any(entered is one for entered, _ in packs.entered) for one in packs.contexts
        ]
        packs.check()
    while packs.entered:
        packs.leave(packs.contexts.index(packs.entered[0][0]))
    packs.check()


@pytest.mark.parametrize("depth", [1, 2, 6])
def test_contexts_within_each_other_ask_nothing_of_those_outside(depth):
    """Contexts that tracked each other's questions about tensors would take a time that is exponential in their number."""

    class Seen(TorchFunctionMode):
        count = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **(kwargs or {}))

    model, counts = network(), []
    for contexts in (0, depth):
        with Seen() as seen, contextlib.ExitStack() as stack:
            for _ in range(contexts):
                stack.enter_context(actcodec.compress_activations(model, "sfpr"))
            seen.count = 0
            loss_of(model)
            counts.append(seen.count)
    assert counts[0] == counts[1] > 0


@pytest.mark.usefixtures("nothing_is_left")
def test_contexts_in_generators_end_when_these_do():
    model = network()
    contexts = [actcodec.compress_activations(model, "sfpr") for _ in range(2)]

    def losses(context):
        with context as stats:
            while True:
                yield loss_of(model), stats

    first, second = (losses(context) for context in contexts)
    _, of_first = next(first)
    _, of_second = next(second)
    first.close()
    kept = len(of_first.records)
    next(second)
    assert len(of_first.records) == kept
    assert len(of_second.records) > kept
    del second
    gc.collect()
    assert not any(context.enabled for context in contexts)


@pytest.mark.usefixtures("nothing_is_left")
def test_other_hooks_and_modes_stay_where_they_are():
    """Torch's own contexts above and below a context that is left, whose exits take the top of the stack in any case."""
    model, seen = network(), []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    context, above, mode = actcodec.compress_activations(model, "sfpr"), save_on_cpu(), Mode()
    context.enable()
    above.__enter__()
    mode.__enter__()
    context.disable()
    assert torch.equal(gradient(model, loss_of(model)), gradient(model, loss_of(model)))
    assert seen
    mode.__exit__(None, None, None)
    above.__exit__()


def test_a_context_that_was_taken_out_says_so():
    """Torch's own contexts take the top of a stack for theirs."""
    context, below = actcodec.compress_activations(network(), "sfpr"), save_on_cpu()
    below.__enter__()
    context.enable()
    below.__exit__()
    with pytest.raises(UserError, match="was opened before this compression was closed while it was enabled"):
        context.disable()
    assert not context.enabled
    below.__exit__()
    assert stacks() == (0, torch._C._len_torch_function_stack())
