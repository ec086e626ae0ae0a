"""Layouts: the axes of dense tensors in memory order, and which sizes are numbers."""

from itertools import permutations

import pytest
import torch
from actcodec.graph.layout import Layout, is_dense, layout_of
from torch import Tensor
from traced import fake_of


@pytest.mark.parametrize("order", list(permutations(range(4))))
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 3, 4, 5), (2, 1, 1, 5), (3, 4, 5, 1), (1, 1, 1, 1)])
def test_permuted_tensors_are_split_and_joined_without_a_copy(order: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    x = torch.arange(torch.Size(sizes).numel()).view(sizes).permute(order)
    layout = layout_of(x)
    flat = layout.split(x, 4, (-1,))
    assert torch.equal(flat, torch.arange(x.numel()))
    joined = layout.join(flat, 4, 1)
    assert torch.equal(joined, x)
    assert (joined.shape, joined.stride()) == (x.shape, x.stride())
    assert joined.data_ptr() == x.data_ptr()


def test_a_channels_last_tensor_of_one_channel_keeps_its_strides() -> None:
    x = torch.randn(2, 1, 3, 4).to(memory_format=torch.channels_last)
    layout = layout_of(x)
    assert layout.join(layout.split(x, 4, (-1,)), 4, 1).stride() == x.stride()


@pytest.mark.parametrize(
    "value",
    [torch.zeros(4, 6)[:, :5], torch.zeros(6)[::2], torch.zeros(1, 6).expand(4, 6), torch.zeros(8).unfold(0, 4, 1)],
    ids=["gap", "steps", "expanded", "overlap"],
)
def test_what_is_not_dense_is_refused(value: Tensor) -> None:
    assert not is_dense(value)
    with pytest.raises(ValueError, match="not dense"):
        layout_of(value)


def test_symbolic_sizes_end_what_is_known() -> None:
    x = torch.zeros(4, 5, 6, 7)
    assert layout_of(x) == Layout(torch.float32, (0, 1, 2, 3), (4, 5, 6, 7))
    assert layout_of(fake_of(x, {0, 1})) == Layout(torch.float32, (0, 1, 2, 3), (6, 7))
    assert layout_of(fake_of(x.transpose(1, 2), {0, 2})) == Layout(torch.float32, (0, 2, 1, 3), (6, 7))
    assert layout_of(fake_of(x, {3})).inner == ()


def test_axes_are_as_few_as_suit() -> None:
    layout = Layout(torch.float32, (0, 1, 2, 3), (6, 7))
    assert layout.axes(lambda values: values > 5) == 1
    assert layout.axes(lambda values: values % 6 == 0) == 2
    assert layout.axes(lambda values: values % 5 == 0) is None
