"""Known traps of saved-tensor hooks, one test per trap (S1 ...)."""

import copy
import gc
import threading
import weakref

import actcodec
import pytest
import torch
from actcodec.training import ReconstructionError
from codecs_for_tests import ExactCodec
from torch import nn
from torch.nn import functional as F

EMPTY = nn.Module()


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 5)
    )


def assert_same_gradients(model, x, codec, forward=None):
    """Gradients with hooks equal those without, to the last bit."""
    forward = forward or (lambda m, t: m(t).square().sum())
    plain, hooked = copy.deepcopy(model), copy.deepcopy(model)
    want = gradients(plain, forward(plain, x))
    with actcodec.compress_activations(hooked, codec) as stats:
        loss = forward(hooked, x)
    got = gradients(hooked, loss)
    assert len(want) == len(got) > 0
    for a, b in zip(want, got, strict=True):
        assert torch.equal(a, b)
    return stats


def test_s1_compressed_tensor_changed_in_place_afterwards():
    x = torch.randn(4, 8, requires_grad=True)
    with actcodec.compress_activations(EMPTY, ExactCodec(), min_bytes=0):
        y = x * 1.5
        z = (y**2).sum()
        y.detach().zero_()
    z.backward()
    torch.testing.assert_close(x.grad, 2 * 1.5 * 1.5 * x.detach())


def test_s2_exact_tensor_changed_in_place_raises():
    x = torch.randn(4, 8, requires_grad=True)
    with actcodec.compress_activations(EMPTY, "none"):
        y = x * 1.5
        z = (y**2).sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_s3_parameter_updated_between_forward_and_backward_raises():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    with actcodec.compress_activations(model, ExactCodec()):
        loss = model(torch.randn(4, 8)).sum()
    with torch.no_grad():
        model[1].weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("codec", ["jpeg-act", "sfpr", "sfpr+zvc", "brc"])
def test_s4_pack_never_changes_its_input(codec):
    model = convnet()
    x = torch.randn(2, 3, 8, 8)
    kept = []
    for module in model:
        module.register_forward_hook(lambda m, i, o: kept.append((o, o.detach().clone(), o._version)))
    before = x.clone()
    with actcodec.compress_activations(model, codec):
        model(x)
    assert torch.equal(x, before)
    assert x._version == 0
    for now, then, version in kept:
        assert torch.equal(now, then)
        assert now._version == version


def test_s5_no_reference_cycle():
    gc.disable()
    try:
        x = torch.randn(4, 8, requires_grad=True)
        with actcodec.compress_activations(EMPTY, "none"):
            y = (x * 2).exp()  # exp saves its own result
        dead = weakref.ref(y)
        del y
        assert dead() is None
    finally:
        gc.enable()


def test_s6_transposed_weight_is_never_compressed():
    model, codec = nn.Linear(16, 12), ExactCodec()
    x = torch.randn(5, 16, requires_grad=True)
    with actcodec.compress_activations(model, codec):
        model(x).sum().backward()
    assert codec.given == [(5, 16)]


@pytest.mark.parametrize("frozen", [False, True])
def test_s7_autocast_copy_of_a_weight_is_never_compressed(frozen):
    model, codec = nn.Conv2d(4, 6, 3), ExactCodec()
    model.weight.requires_grad_(not frozen)
    x = torch.randn(2, 4, 8, 8, requires_grad=True)
    with actcodec.compress_activations(model, codec) as stats, torch.autocast("cpu", torch.bfloat16):
        loss = model(x).float().sum()
    loss.backward()
    assert (6, 4, 3, 3) not in codec.given
    assert all(row["shape"] != [6, 4, 3, 3] for row in stats.tensors)


@pytest.fixture
def process_group(tmp_path):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("wrapper", ["ddp", "fsdp2"])
def test_s8_wrapped_parameters_are_never_compressed(process_group, wrapper):
    model, codec = nn.Sequential(nn.Linear(16, 12), nn.Linear(12, 7)), ExactCodec()
    if wrapper == "ddp":
        wrapped = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        wrapped = fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    with actcodec.compress_activations(wrapped, codec, min_bytes=0):
        loss = wrapped(torch.randn(5, 16, requires_grad=True)).sum()
    loss.backward()
    assert set(codec.given) <= {(5, 16), (5, 12)}
    assert (5, 12) in codec.given


def test_s9_parameters_are_found_without_the_model():
    """A parameter that the model does not list, plain and through a chain of single-input operations."""
    weight, codec = nn.Parameter(torch.randn(6, 4)), ExactCodec()
    x = torch.randn(5, 6, requires_grad=True)
    with actcodec.compress_activations(EMPTY, codec, min_bytes=0):
        (x @ weight + x @ weight.t().to(torch.float64).to(torch.float32).t()).sum().backward()
    assert set(codec.given) == {(5, 6)}


def test_s9_embedding_results_are_activations():
    model, codec = nn.Embedding(20, 8), ExactCodec()
    with actcodec.compress_activations(model, codec, min_bytes=0):
        (model(torch.tensor([1, 2, 3])) ** 2).sum().backward()
    assert codec.given == [(3, 8)]


@pytest.mark.parametrize("norm", [nn.BatchNorm2d(8), nn.GroupNorm(2, 8), nn.LayerNorm([8, 8, 8]), nn.InstanceNorm2d(8)])
def test_s10_statistics_buffers_and_vectors_are_exact(norm):
    codec = ExactCodec()
    with actcodec.compress_activations(norm, codec) as stats:
        norm(torch.randn(4, 8, 8, 8, requires_grad=True) * 1).sum().backward()
    assert [shape for shape in codec.given if len(shape) == 4 and shape[2:] == (8, 8)] == codec.given
    assert len(codec.given) == len(stats.tensors) == 1


def test_s11_indices_and_masks_are_exact_and_masks_are_packed():
    x = torch.randn(3, 40, requires_grad=True)
    mask = torch.rand(3, 40) > 0.5
    codec = ExactCodec()
    with actcodec.compress_activations(EMPTY, codec):
        y = F.cross_entropy(x.masked_fill(mask, 0.0) * 1, torch.tensor([1, 2, 3]))
        z = x.gather(1, torch.tensor([[0], [5], [7]])).sum()
    (y + z).backward()
    reference = x.detach().clone().requires_grad_()
    want = F.cross_entropy(reference.masked_fill(mask, 0.0) * 1, torch.tensor([1, 2, 3]))
    (want + reference.gather(1, torch.tensor([[0], [5], [7]])).sum()).backward()
    assert torch.equal(x.grad, reference.grad)
    from actcodec.saved.forms import BitForm

    packed = BitForm.of(mask)
    assert packed.nbytes == 15 + 1
    assert torch.equal(packed.tensor(), mask)


@pytest.mark.parametrize("codec", ["jpeg-act", actcodec.training.Policy(())])
def test_s12_dropout_mask_is_exact_in_one_bit_per_value(codec):
    x = torch.randn(4, 8, 8, 8, requires_grad=True)
    with actcodec.compress_activations(EMPTY, codec) as stats:
        y = F.dropout(x, 0.3)
    y.sum().backward()
    assert torch.equal(x.grad * x.detach(), y.detach())
    (mask,) = stats.tensors
    assert mask["codec"] == "bits"
    assert mask["bytes_compressed"] == 4 * 8 * 8 * 8 // 8 + 4


def test_s13_a_tensor_saved_by_two_operations_is_kept_once():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
    codec = ExactCodec()
    stats = assert_same_gradients(model, torch.randn(2, 3, 8, 8), codec)
    assert codec.given == [(2, 3, 8, 8), (2, 8, 8, 8), (2, 8, 8, 8)]
    assert [record.saved_by for record in stats.records] == [("conv",), ("relu", "conv"), ("square",)]
    assert stats.bytes_original == (2 * 3 * 64 + 2 * 2 * 8 * 64) * 4


def test_s13_relu_alone_keeps_bits_and_relu_into_conv_keeps_values():
    x = torch.randn(2, 8, 16, 16, requires_grad=True)
    conv = nn.Conv2d(8, 8, 3)
    with actcodec.compress_activations(conv, "jpeg-act") as stats:
        alone = F.relu(x * 1) + 1
        shared = conv(F.relu(x * 2))
    assert [row["codec"] for row in stats.tensors if row["op"] == "relu"] == ["brc", "sfpr+zvc"]
    alone.sum().backward()
    assert torch.equal(x.grad, (x > 0).float())
    shared.sum().backward()


def test_s14_memory_reused_by_another_tensor_is_not_mistaken():
    """Each product dies at once, so that the allocator gives its memory to a later one; that it does is part of the test."""
    x = torch.randn(64, 64, requires_grad=True)
    addresses, total, squares = [], torch.zeros(()), 0.0
    with actcodec.compress_activations(EMPTY, ExactCodec()):
        while len(addresses) < 20 or len(set(addresses)) == len(addresses) < 2000:
            factor = 1 + len(addresses) / 64
            y = x * factor
            addresses.append(y.data_ptr())
            total = total + (y**2).sum()
            squares += factor**2
            del y
    assert len(set(addresses)) < len(addresses)
    total.backward()
    torch.testing.assert_close(x.grad, 2.0 * squares * x.detach())


@pytest.mark.parametrize("part", [slice(None), slice(1, 3)])
@pytest.mark.parametrize("write", [lambda x, new: x.data.copy_(new), lambda x, new: x.numpy().__setitem__(..., new.numpy())])
def test_s14_an_input_written_behind_autograds_back_is_not_mistaken(write, part):
    """The version of the memory is still the same, and a first graph lives."""
    layer, x, new = nn.Linear(16, 4), torch.randn(4, 16), torch.randn(4, 16)
    with actcodec.compress_activations(layer, "sfpr", min_bytes=0):
        first = layer(x)
        write(x, new)
        (gradient,) = torch.autograd.grad(layer(x[part]).sum(), layer.weight)
    assert first.grad_fn is not None
    torch.testing.assert_close(gradient, new[part].sum(0).expand(4, 16), rtol=0, atol=0.05)


def test_s15_square_matrix_and_its_transpose_are_two_tensors():
    x = torch.randn(8, 8, requires_grad=True)
    y = x * 1
    with actcodec.compress_activations(EMPTY, ExactCodec()):
        z = ((y**2) * torch.arange(8.0) + (y.t() ** 2) * torch.arange(8.0).flip(0)).sum()
    z.backward()
    reference = x.detach().clone().requires_grad_()
    (((reference**2) * torch.arange(8.0)) + ((reference.t() ** 2) * torch.arange(8.0).flip(0))).sum().backward()
    assert torch.equal(x.grad, reference.grad)


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(1, 3),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "slice": lambda x: x[:, ::2, 1:],
    "expanded": lambda x: x[:, :1].expand(-1, 5, -1, -1),
    "windows": lambda x: x.flatten().unfold(0, 8, 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_s16_layouts_come_back(layout, dtype):
    x = torch.randn(2, 4, 8, 8, dtype=dtype, requires_grad=True)
    y = LAYOUTS[layout](x * 1)
    with actcodec.compress_activations(EMPTY, ExactCodec()) as stats:
        z = y**2
    saved = z.grad_fn._saved_self
    assert torch.equal(saved, y)
    assert (saved.shape, saved.stride(), saved.dtype, saved.device) == (y.shape, y.stride(), y.dtype, y.device)
    if layout == "expanded":
        assert stats.bytes_original == 2 * 8 * 8 * y.element_size()


@pytest.mark.parametrize("change", [lambda y: y[:1], lambda y: y.double(), lambda y: y.reshape(-1)])
def test_s17_another_shape_or_dtype_is_refused(change):
    class Wrong(ExactCodec):
        def decompress(self, compressed):
            return change(super().decompress(compressed))

    x = torch.randn(4, 8, requires_grad=True)
    with actcodec.compress_activations(EMPTY, Wrong(), min_bytes=0):
        z = ((x * 1) ** 2).sum()
    with pytest.raises(ReconstructionError, match="codec 'copy' returned"):
        z.backward()


def test_s18_unpacked_twice_gives_the_same():
    model = convnet()
    with actcodec.compress_activations(model, "jpeg-act"):
        y = model[0](torch.randn(2, 3, 8, 8)) ** 2
    first, second = y.grad_fn._saved_self, y.grad_fn._saved_self
    assert torch.equal(first, second)
    y.sum().backward(retain_graph=True)
    once = model[0].weight.grad.clone()
    model.zero_grad()
    y.sum().backward()
    assert torch.equal(once, model[0].weight.grad)


def test_s19_double_backward_is_exact_with_an_exact_codec():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)

    def function(a, b):
        with actcodec.compress_activations(EMPTY, ExactCodec()):
            return torch.tanh(a @ b) * (a @ b)

    assert torch.autograd.gradcheck(function, (x, w))
    assert torch.autograd.gradgradcheck(function, (x, w))


def test_s20_the_innermost_of_nested_contexts_packs():
    outer, inner = ExactCodec(), ExactCodec()
    x = torch.randn(4, 8, requires_grad=True)
    with actcodec.compress_activations(EMPTY, outer, min_bytes=0):
        with actcodec.compress_activations(EMPTY, inner, min_bytes=0):
            (x * 1) ** 2
        assert (len(outer.given), len(inner.given)) == (0, 1)
        (x * 1) ** 2
    assert (len(outer.given), len(inner.given)) == (1, 1)


def test_s26_nothing_is_packed_under_no_grad():
    model, codec = convnet(), ExactCodec()
    with actcodec.compress_activations(model, codec) as stats, torch.no_grad():
        model(torch.randn(2, 3, 8, 8))
    assert codec.given == []
    assert stats.ratio == 1.0


def test_s26_threads_each_have_their_own_context():
    """Two threads train two models at once; a third thread runs the backward of the first."""
    results, want = {}, {}
    models = [convnet() for _ in range(2)]
    inputs = [torch.randn(2, 3, 8, 8) for _ in range(2)]
    for i, model in enumerate(models):
        plain = copy.deepcopy(model)
        want[i] = gradients(plain, plain(inputs[i]).square().sum())
    barrier = threading.Barrier(2)
    losses = {}

    def work(i):
        codec = ExactCodec()
        with actcodec.compress_activations(models[i], codec):
            barrier.wait(20)
            losses[i] = models[i](inputs[i]).square().sum()
            barrier.wait(20)
        results[i] = codec.given

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    [thread.start() for thread in threads]
    [thread.join(30) for thread in threads]
    assert results[0] == results[1] != []
    third = threading.Thread(target=lambda: [loss.backward() for loss in losses.values()])
    third.start()
    third.join(30)
    for i, model in enumerate(models):
        got = [p.grad for p in model.parameters()]
        # Threads may split sums differently, so that the last bits differ.
        torch.testing.assert_close(got, want[i], rtol=1e-4, atol=1e-5)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


class Cubic(torch.Tensor):
    """A weight that calls a custom function in the place of a linear layer."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is nn.functional.linear:
            return Cube.apply(args[0])
        return super().__torch_function__(function, types, args, kwargs or {})


def test_s27_custom_function_within_a_torch_function_is_exact():
    x, weight = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64).as_subclass(Cubic)
    with actcodec.compress_activations(EMPTY, "sfpr", min_bytes=0) as statistics:
        y = nn.functional.linear(x * 1, weight).sum()
    assert [record.codec for record in statistics.records] == ["exact"]
    y.backward()
    torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)


@pytest.mark.parametrize("name", ["relu", "abs", "clamp", "pad", "max_pool2d", "linear"])
def test_s27_operators_of_other_libraries_are_exact_whatever_their_name(name):
    @torch.library.custom_op(f"s27::{name}", mutates_args=())
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    square.register_autograd(lambda ctx, gradient: 2 * gradient * ctx.saved_tensors[0], setup_context=setup)
    x = torch.randn(64, 64, requires_grad=True)
    with actcodec.compress_activations(EMPTY, "sfpr", min_bytes=0):
        y = (getattr(torch.ops.s27, name)(x * 1) * torch.ones(64, 64)).sum()
    y.backward()
    assert torch.equal(x.grad, 2 * x.detach())


class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise LookupError("from forward")

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_s27_custom_function_is_seen_and_exceptions_pass_through():
    x, codec = torch.randn(4, 8, requires_grad=True), ExactCodec()
    with actcodec.compress_activations(EMPTY, codec, min_bytes=0):
        y = Cube.apply(x * 1).sum()
    y.backward()
    assert codec.given == [(4, 8)]
    torch.testing.assert_close(x.grad, 3 * x.detach() ** 2)
    with pytest.raises(LookupError, match="from forward"), actcodec.compress_activations(EMPTY, codec, min_bytes=0):
        Failing.apply(x * 1)

    class Broken(ExactCodec):
        def compress(self, x):
            raise ArithmeticError("from the codec")

    with pytest.raises(ArithmeticError, match="from the codec"), actcodec.compress_activations(EMPTY, Broken(), min_bytes=0):
        (x * 1) ** 2
