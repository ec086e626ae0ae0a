"""Cases for every backend that claims the golden model's bytes: codecs with options, tensors, payloads to spoil."""

from dataclasses import fields, is_dataclass, replace

import actcodec
import numpy as np
import torch
from actcodec.codecs import Compressed, JpegBaseCompressed
from cdu_spec import UserError
from cdu_spec.bitstream import BitstreamError, Header
from cdu_spec.modes import Dtype, Mode
from cdu_spec.mx import MX_FORMATS, NVFP4
from hypothesis import strategies as st

FLOATS = [torch.float32, torch.bfloat16, torch.float16]
OPTIONS = {
    "sfpr": {"scale_bits": [24, 11, 8], "S": [1.0, 1.125, 4.0]},
    "sfpr+zvc": {"scale_bits": [24, 8]},
    "jpeg-act": {
        "dqt": ["optL", "optH", "image80"],
        "const_bits": [8, 12, 13],
        "pass1_bits": [0, 2, 4],
        "rounding": ["half_away", "trunc"],
        "scale_bits": [24, 11],
        "rec": [0, 1 / 8, 1 / 2],
    },
    "jpeg-gmc": {
        "dqt": ["optL", "uniform-1", "uniform-16", "uniform-64"],
        "rec": [0, 1 / 8, 1 / 4, 3 / 8, 1 / 2],
        "rounding": ["half_away", "trunc"],
        "scale_bits": [24, 8],
    },
    "jpeg-base": {"huffman": ["standard", "optimal"]},
    "brc": {},
    "bypass": {},
    "division": {"bits": [1, 2, 4, 8], "range": ["channel", "block"], "rounding": ["stochastic", "nearest"], "S": [1.0, 0.5]},
    "actnn": {"bits": [1, 2, 4, 8], "rounding": ["stochastic", "nearest"]},
    "blpa": {"bits": [1, 2, 4, 8]},
    "autoquant": {"bits": [1, 2, 4, 8], "rounding": ["stochastic", "nearest"]},
    "autoquantz": {"bits": [1, 2, 4, 8], "rounding": ["stochastic", "nearest"]},
    "acgc-quant": {"bits": [1, 3, 8, 9, 16]},
    "acgc-quantz": {"bits": [1, 3, 8, 9, 16]},
    "cusz": {"bound": [2.0**-8, 1e-6, 1e-10], "mode": ["rel", "abs"], "dimensions": [None, 0, 1, 2, 3]},
    "blpa-float": {"bits": [1, 2, 4, 8]},
    "blpa-coded": {"bits": [1, 3.5, 12], "coder": ["deflate", "contexts"]},
    "feature-coded": {"bits": [1, 3.5, 12], "steps_of": ["feature", "token"], "coder": ["deflate", "contexts"]},
    "feature-klt": {
        "bits": [1, 3.5, 12],
        "steps_of": ["feature", "token"],
        "heads": [False, True],
        "coder": ["deflate", "contexts"],
    },
    "actnn-float": {"bits": [1, 2, 4, 8], "rounding": ["stochastic", "nearest"]},
    "division-float": {
        "bits": [1, 2, 4, 8],
        "block": [1, 3, 8],
        "parts": ["both", "low", "high", "plain"],
        "rounding": ["stochastic", "nearest"],
    },
    "actnn-sample": {
        "bits": [1, 2, 3, 4, 5, 6, 7, 8],
        "group": [1, 7, 64, 256, 1000],
        "rounding": ["stochastic", "nearest"],
    },
    **{name: {"scale": ["floor", "rceil"]} for name in MX_FORMATS},
    NVFP4: {},
    "int8-rows": {},
    "sparse-sample": {"bits": [1, 3, 8], "group": [7, 256], "rounding": ["stochastic", "nearest"]},
}
KINDS = ["normal", "relu", "zero", "negative zero", "max", "subnormal", "huge range", "one channel zero", "ties"]
shapes = st.one_of(
    st.lists(st.integers(1, 7), min_size=1, max_size=5).map(tuple),
    st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 18), st.integers(1, 70)),
    st.tuples(st.integers(1, 2), st.integers(1, 4), st.sampled_from([8, 16, 24]), st.sampled_from([7, 8, 16, 32, 264])),
    st.tuples(st.integers(1, 3000)),
)


@st.composite
def settings_of(draw, names):
    """Draw a codec of those named, and options for it."""
    name = draw(st.sampled_from(names))
    options = {option: draw(st.sampled_from(values)) for option, values in OPTIONS[name].items()}
    if options.get("range") == "block":
        del options["S"]
    return name, options


def parts(packed):
    """Return everything that a compressed tensor consists of, as bytes."""
    if isinstance(packed, (Compressed, JpegBaseCompressed)):
        return [packed.to_bytes()]
    if isinstance(packed, torch.Tensor):
        return [packed.contiguous().view(-1).view(torch.uint8).cpu().numpy().tobytes()]
    if isinstance(packed, tuple):
        return [part for each in packed for part in parts(each)]
    if is_dataclass(packed):
        return [part for field in fields(packed) for part in parts(getattr(packed, field.name))]
    return []


def refusal(codec, x):
    """Return the message with which a codec refuses a tensor, or else an empty one, and restart its random numbers."""
    try:
        codec.compress(x)
    except UserError as error:
        return str(error)
    codec.restart(0)
    return ""


def same_bits(x, y):
    return (x.shape, x.dtype) == (y.shape, y.dtype) and torch.equal(
        x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8)
    )


#: Codecs whose payloads are decoded by kernels.
PAYLOAD_CASES = [
    ("sfpr", {}),
    ("sfpr+zvc", {}),
    ("jpeg-act", {}),
    ("jpeg-act", {"rec": 1 / 2}),
    ("jpeg-gmc", {}),
    ("jpeg-gmc", {"dqt": "uniform-1"}),
    ("brc", {}),
    ("division", {"bits": 8}),
    ("division", {"range": "channel", "bits": 2}),
    ("actnn", {"bits": 8}),
    ("actnn", {"bits": 1}),
    ("blpa", {}),
    ("autoquant", {"bits": 2}),
    ("autoquantz", {"bits": 1}),
    ("autoquantz", {"bits": 2}),
    ("autoquantz", {"bits": 4}),
    ("autoquantz", {"bits": 8}),
]


def decoded(packed, backend):
    """Return the tensor, or the message of a refusal."""
    try:
        return packed.decompress(backend)
    except BitstreamError as error:
        return str(error)


@st.composite
def spoiled(draw):
    """Draw a compressed tensor with a payload that is partly changed, cut off, or extended."""
    name, options = draw(st.sampled_from(PAYLOAD_CASES))
    x = torch.randn(2, 2, 9, 16, generator=torch.Generator().manual_seed(draw(st.integers(0, 999)))).relu()
    packed = actcodec.codec(name, **options).compress(x)
    payload = packed.payload.clone()
    for _ in range(draw(st.integers(1, 3))):
        payload[draw(st.integers(0, payload.numel() - 1))] = draw(st.integers(0, 255))
    change = draw(st.sampled_from(["none", "cut", "longer"]))
    if change == "cut":
        payload = payload[: draw(st.integers(0, payload.numel() - 1))].clone()
    elif change == "longer":
        payload = torch.cat((payload, torch.full((draw(st.integers(1, 80)),), 255, dtype=torch.uint8)))
    return replace(packed, payload=payload)


def extreme_coefficients(const_bits, pass1_bits, kind, count=512):
    """Return blocks of coefficients that no picture has, up to both ends of their range: sums of 35 bits, too wide for 32."""
    random = np.random.default_rng(const_bits * 10 + pass1_bits)
    if kind == "random":
        q = random.integers(1, 128, (count, 64)) * random.choice([-1, 1], (count, 64))
    else:
        signs = random.choice([-1, 1], (count, 64)) if kind == "corners" else np.ones((count, 64), int)
        q = np.where(signs > 0, 127, -128)
    payload = np.concatenate((np.full((count, 8), 255), q & 255), 1).astype(np.uint8).reshape(-1)
    shape = (1, 1, 8, 8 * count)
    header = Header(Mode.JPEG_ACT, Dtype.FP32, shape, payload.size, const_bits, pass1_bits)
    return Compressed(header, (7,) * 64, torch.ones(1), torch.from_numpy(payload))
