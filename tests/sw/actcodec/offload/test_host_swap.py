"""The schedule of copies to the host and back, on streams whose work is done only when a caller waits for it."""

import gc

import actcodec
import pytest
import torch
from actcodec.codecs.baselines.vdnn_codec import VdnnCodec
from actcodec.codecs.compressed import RawCopy
from actcodec.offload.host_swap import HostSwap, SwappedForm
from actcodec.offload.pinned_pool import PinnedPool, rounded_size
from torch import nn


class Mark:
    def __init__(self, stream, place):
        self.stream, self.place = stream, place

    def query(self):
        return self.stream.done >= self.place


class LateCopies:
    """A stream of copies that lags behind as far as it may; ``events`` records started copies and waits."""

    def __init__(self):
        self.work, self.done, self.events = [], 0, []

    def pinned(self, nbytes):
        self.events.append(("pinned", nbytes))
        return torch.full((nbytes,), 0xA5, dtype=torch.uint8)

    def out(self, parts, host):
        self.events.append(("out", self.names(parts)))
        return self.queued(lambda: [place.copy_(part) for part, place in zip(parts, host, strict=True)])

    def back(self, host, after):
        parts = [torch.full_like(part, 77) for part in host]
        self.events.append(("back", len(self.work)))
        assert after.place <= len(self.work)
        return parts, self.queued(lambda: [part.copy_(place) for part, place in zip(parts, host, strict=True)])

    def wait(self, parts, mark):
        self.events.append(("wait", mark.place))
        self.run(mark.place)

    def queued(self, work):
        self.work.append(work)
        return Mark(self, len(self.work))

    def run(self, place=None):
        while self.done < (len(self.work) if place is None else place):
            self.work[self.done]()
            self.done += 1

    @staticmethod
    def names(parts):
        return int(parts[0].flatten()[0])


def swap_of(stream, **options):
    return HostSwap(copies_for=lambda device: stream, **options)


def forms(count, size=3000):
    return [RawCopy(torch.full((size,), float(number))) for number in range(count)]


def test_backward_finds_what_it_needs_on_its_way():
    stream = LateCopies()
    swap = swap_of(stream, ahead=2)
    swapped = [swap.out(form) for form in forms(5)]
    assert [event for event in stream.events if event[0] == "out"] == [("out", number) for number in range(5)]
    assert stream.done == 0  # forward waits for nothing
    stream.events.clear()
    begun = []
    for number in reversed(range(5)):
        before = len(stream.work)
        assert torch.equal(swapped[number].decompress(), torch.full((3000,), float(number)))
        begun.append(len(stream.work) - before)
        swapped.pop()
    # The last one and the two before it; then each time one more, as long as there is one.
    assert begun == [3, 1, 1, 0, 0]
    # The copies that are not yet needed are begun before it waits for the one that is.
    assert [kind for kind, _ in stream.events[:4]] == ["back", "back", "back", "wait"]


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_how_many_are_on_the_device(ahead):
    stream = LateCopies()
    swap = swap_of(stream, ahead=ahead)
    swapped = [swap.out(form) for form in forms(6)]
    swapped[-1].decompress()
    assert sum(kind == "back" for kind, _ in stream.events) == 1 + ahead


def test_forms_that_the_graph_has_forgotten_are_not_fetched():
    stream = LateCopies()
    swap = swap_of(stream, ahead=1)
    swapped = [swap.out(form) for form in forms(4)]
    del swapped[1:3]
    gc.collect()
    stream.events.clear()
    swapped.pop().decompress()
    assert sum(kind == "back" for kind, _ in stream.events) == 2  # itself and the first
    before = len(stream.work)
    assert torch.equal(swapped[0].decompress(), torch.zeros(3000))
    assert len(stream.work) == before


def test_twice():
    stream = LateCopies()
    swapped = [swap_of(stream).out(form) for form in forms(1)]
    first, second = swapped[0].decompress(), swapped[0].decompress()
    assert torch.equal(first, second)
    assert first.data_ptr() != second.data_ptr()


def test_pinned_memory_is_used_again_but_not_before_its_copies_are_done():
    stream = LateCopies()
    swap = swap_of(stream)
    swapped = [swap.out(form) for form in forms(3)]
    held = swap.pinned_bytes
    del swapped
    gc.collect()
    late = [swap.out(form) for form in forms(3)]  # the copies out are still to be done
    assert swap.pinned_bytes == 2 * held
    stream.run()
    more = [swap.out(form) for form in forms(3)]
    assert swap.pinned_bytes == 2 * held
    for number, form in enumerate((*late, *more)):
        assert torch.equal(form.decompress(), torch.full((3000,), float(number % 3)))
    del late, more, form
    gc.collect()
    for _ in range(4):
        stream.run()
        again = [swap.out(form) for form in forms(5)]
        del again
    assert swap.pinned_bytes == 2 * held


def test_small_forms_and_those_on_the_cpu_stay():
    stream = LateCopies()
    small = RawCopy(torch.zeros(100))
    assert swap_of(stream).out(small) is small
    assert isinstance(swap_of(stream, min_bytes=0).out(small), SwappedForm)
    large = RawCopy(torch.zeros(100_000))
    assert HostSwap().out(large) is large


@pytest.mark.parametrize("nbytes", [0, 1, 4096, 4097, 100_000, 1 << 20, (1 << 24) + 1])
def test_sizes_of_buffers(nbytes):
    size = rounded_size(nbytes)
    assert nbytes <= size <= max(nbytes * 9 / 8, nbytes + 4096)
    assert rounded_size(size) == size


def test_a_pool_keeps_sizes_apart():
    stream = LateCopies()
    pool = PinnedPool(stream.pinned)
    small, large = pool.take(5000), pool.take(50_000)
    pool.give_back(small, Mark(stream, 0))
    pool.give_back(large, Mark(stream, 1))
    assert pool.take(40_000) is not large
    assert pool.take(6000).data_ptr() == small.data_ptr()
    assert pool.take(50_000) is not large  # its copy is not done
    stream.done = 1
    assert pool.take(50_000).data_ptr() == large.data_ptr()


@pytest.mark.parametrize("policy", ["vdnn", "actnn-L4"])
@pytest.mark.filterwarnings("ignore:vdnn:UserWarning", "ignore:actnn-L4:UserWarning")
def test_training_steps_by_late_copies_have_the_same_gradients(policy, monkeypatch):
    """A tensor that is read before its copy has arrived, or overwritten too early, differs from the saved one."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.Flatten(), nn.LazyLinear(4)
    )
    x = torch.randn(8, 3, 12, 12)
    model(x)
    stream = LateCopies()

    def gradients(swap):
        chosen = actcodec.training.policy(policy) if policy != "vdnn" else VdnnCodec()
        chosen._swap = swap
        found = []
        for _ in range(3):
            with actcodec.compress_activations(model, chosen) as stats:
                loss = model(x).square().mean()
            loss.backward()
            found.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
            model.zero_grad()
            del loss
        return found, stats.bytes_compressed

    moved, moved_bytes = gradients(swap_of(stream, min_bytes=0))
    kept, kept_bytes = gradients(HostSwap())
    assert all(torch.equal(one, other) for one, other in zip(moved, kept, strict=True))
    assert moved_bytes == kept_bytes
    assert sum(kind == "back" for kind, _ in stream.events) >= 6
