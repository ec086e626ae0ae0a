"""S32: memory that is taken while tensors are packed and unpacked, by the events of torch's allocator.

The bound is 1.2 times the tensor that is packed; what is kept (packed) or asked for (unpacked) comes on top.
"""

import functools

import actcodec
import pytest
import torch
from actcodec.codecs import CODEC_NAMES, codec_options
from actcodec.saved.allocations import allocations
from actcodec.saved.forms import Bits, Coded
from actcodec.saved.operations import Operation
from actcodec.saved.pool_indices import WindowPositions
from actcodec.saved.shape_only import ShapeOnly
from actcodec.training import policy_options
from torch.nn import functional as F

BOUND = 1.2
LAST = torch.channels_last


def assert_small(x, pack):
    """The form comes back to the last bit, in its layout, and neither way takes much."""
    packed = allocations(pack)
    form = packed.result
    assert packed.kept < x.nbytes
    assert packed.temporary <= BOUND * x.nbytes
    unpacked = allocations(form.tensor)
    assert unpacked.temporary <= BOUND * x.nbytes
    y = unpacked.result
    assert (y.shape, y.stride(), y.dtype) == (x.shape, x.stride(), x.dtype)
    return y


def test_the_measure_sees_temporaries():
    x = torch.zeros(1 << 18)
    seen = allocations(lambda: ((x + 1) * 2).sum())
    assert 2 * x.nbytes <= seen.temporary < 2.1 * x.nbytes
    assert 0 < seen.kept < 1000


@pytest.mark.parametrize(
    ("function", "shape", "arguments", "last"),
    [
        ("max_pool1d", (32, 128, 64), (3, 2, 1), False),
        ("max_pool2d", (8, 64, 64, 64), (3, 2, 1), False),
        ("max_pool2d", (8, 32, 64, 64), (2,), True),
        ("max_pool2d", (4, 8, 131, 129), (5, 2, 2, 3, True), False),
        ("max_pool3d", (2, 8, 32, 32, 32), (2,), False),
        ("adaptive_max_pool2d", (4, 16, 100, 100), ((61, 67),), False),
        ("adaptive_max_pool2d", (1, 1, 700, 700), ((301, 299),), True),
        ("fractional_max_pool2d", (4, 16, 96, 96), (2, (60, 60)), False),
    ],
)
def test_indices_of_max_pools(function, shape, arguments, last):
    x = torch.randn(shape).to(memory_format=LAST if last else torch.contiguous_format)
    if function == "max_pool1d":
        function, indices = "max_pool1d_with_indices", F.max_pool1d(x, *arguments, return_indices=True)[1]
    elif function.startswith("max"):
        given = dict(zip(("kernel_size", "stride", "padding", "dilation", "ceil_mode"), arguments, strict=False))
        indices = getattr(F, function)(x, **given, return_indices=True)[1]
    else:
        indices = getattr(F, function)(x, *arguments, return_indices=True)[1]
    assert indices.nbytes > 1 << 17
    operation = Operation("pool", (x, *arguments), {}, function)
    assert torch.equal(assert_small(indices, lambda: WindowPositions.of(indices, operation)), indices)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("layout", ["contiguous", "channels last", "transposed", "with gaps"])
def test_masks(dtype, layout):
    x = (torch.rand(4, 16, 65, 63) < 0.5).to(dtype)
    if dtype != torch.bool:
        x /= 0.9
    x = {
        "contiguous": lambda: x,
        "channels last": lambda: x.to(memory_format=LAST),
        "transposed": lambda: x.transpose(1, 3),
        "with gaps": lambda: x[:, :, :, ::2],
    }[layout]()
    # A tensor with gaps takes more memory than it has values.
    compact = x.clone(memory_format=torch.preserve_format) if layout == "with gaps" else x
    y = assert_small(compact, lambda: Bits.of(compact))
    assert torch.equal(y, x)
    back = Bits.of(x).tensor()
    assert torch.equal(back, x)
    assert back.stride() == x.stride()


@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("width", [64, 61])
def test_signs(backend, dtype, last, width):
    x = torch.randn(8, 31, 63, width).relu().to(dtype).to(memory_format=LAST if last else torch.contiguous_format)
    codec = actcodec.codec("brc", backend=backend)
    codec.compress(x)  # the first call compiles the kernels
    assert torch.equal(assert_small(x, lambda: Coded(x, codec)), (x > 0).to(dtype))


#: Coefficients of 16 bits, from which the entropy coder counts before it codes, are as many bytes as a tensor of 16 bits.
COEFFICIENTS = {"jpeg-base", "acgc-jpeg"}
BOUND_OF_COEFFICIENTS = 2.0


@functools.cache
def activation(dtype, mib=8):
    """So many MiB of values, a quarter of them zeros, a quarter near zero."""
    random = torch.Generator().manual_seed(0)
    shape = (16, mib * 16 // dtype.itemsize, 64, 64)
    x = torch.randn(shape, generator=random).relu()
    x[:, ::2] += 0.1 * torch.randn(x[:, ::2].shape, generator=random)
    return x.to(dtype)


#: Bytes of the intermediate results of one piece, for any tensor; those of a transform on matrices in float64.
PIECE, PIECE_OF_TRANSFORM = 1 << 20, 4 << 20
HALF = pytest.param(torch.bfloat16, marks=pytest.mark.campaign)


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
@pytest.mark.parametrize("backend", ["torch", "native"])
@pytest.mark.parametrize("name", CODEC_NAMES)
def test_every_codec(name, backend, dtype):
    options = codec_options(name)
    if backend != "torch" and "backend" not in options:
        pytest.skip("it has one way to compute")
    codec = actcodec.codec(name, **({"backend": backend} if "backend" in options else {}))
    x = activation(dtype)
    Coded(x[:1], codec).tensor()  # the first call compiles the kernels
    bound = BOUND_OF_COEFFICIENTS if name in COEFFICIENTS and dtype.itemsize == 2 else BOUND
    packed = allocations(lambda: Coded(x, codec))
    assert packed.kept >= 0.9 * packed.result.nbytes  # or something is where the allocator does not see it
    assert packed.temporary <= bound * x.nbytes + PIECE
    unpacked = allocations(packed.result.tensor)
    assert unpacked.temporary <= bound * x.nbytes + PIECE
    assert unpacked.result.shape == x.shape


#: MiB.
LARGE = 32
#: The tensor without its centres is another tensor, and has a payload.
BOUND_OF_CENTRED = 1.35


def far_normalisation(dtype):
    """A batch normalisation whose result has a copy; in some channels it is far from zero, and the input has one of its own."""
    norm = torch.nn.BatchNorm2d(activation(dtype, LARGE).shape[1]).to(dtype)
    with torch.no_grad():
        norm.bias[::16] = 30
    return norm


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
@pytest.mark.parametrize(
    ("policy", "backend"),
    [
        # The profiler keeps every operation on every piece: gigabytes.
        pytest.param("jpeg-gmc", "torch", marks=pytest.mark.campaign),
        ("jpeg-gmc", "native"),
        *((policy, backend) for policy in ("blpa", "blpa-coded") for backend in ("torch", "native")),
    ],
)
def test_copies_for_a_normalisation_and_relu(policy, backend, dtype):
    """Forward memory beyond two computed tensors, kept bytes and the bound; backward likewise."""
    if backend != "torch" and "backend" not in policy_options(policy):
        pytest.skip("it has one way to compute")
    x = activation(dtype, LARGE).clone().requires_grad_()
    norm = far_normalisation(dtype)
    chosen = actcodec.training.policy(policy, **({"backend": backend} if backend != "torch" else {}))

    def forward():
        with actcodec.compress_activations(norm, chosen):
            return F.relu(norm(x))

    packed = allocations(forward)
    bound = BOUND_OF_CENTRED if policy == "jpeg-gmc" else BOUND
    assert packed.temporary <= (1 + bound) * x.nbytes + PIECE_OF_TRANSFORM  # the normalised one is freed
    gradient = torch.ones_like(packed.result)
    unpacked = allocations(lambda: torch.autograd.grad(packed.result, x, gradient))
    assert unpacked.peak <= (3 + BOUND) * x.nbytes  # torch takes three: a normalisation's backward has two of its own


def test_shapes_take_nothing():
    x = torch.randn(8, 32, 64, 64)
    for shape, most in ((x, 1000), (x.to(memory_format=LAST), x.nbytes + 1000)):
        form = ShapeOnly.of(shape, Operation("pool", (shape,), {}, "avg_pool2d"))
        assert allocations(form.tensor).peak < most


def test_a_whole_step_of_pools_masks_and_signs():
    """The step's peak with packed tensors is no higher than without."""
    x = torch.randn(8, 16, 64, 64)
    weights = (torch.randn(32, 16, 1, 1) * 0.1).requires_grad_()

    def step(codec):
        with actcodec.compress_activations(torch.nn.Module(), codec):
            loss = F.max_pool2d(F.dropout(F.relu(F.conv2d(x, weights)), 0.3), 3, 2, 1).square().mean()
        loss.backward()

    peaks = {}
    for codec in ("none", "brc"):
        step(codec)
        weights.grad = None
        peaks[codec] = allocations(lambda codec=codec: step(codec)).peak
        weights.grad = None
    assert peaks["brc"] < 0.8 * peaks["none"]
