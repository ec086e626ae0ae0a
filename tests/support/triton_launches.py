"""Writes what kernels of backend triton are launched with, as JSON, to the file of the first argument.

A list of [module, kernel, {parameter: [type, value]}], where a type is "constexpr" or Triton's name of it. Runs in a process of
its own with TRITON_INTERPRET=1: the interpreter computes what the kernels need to know of each other.
"""

import inspect
import json
import sys
from dataclasses import replace
from pathlib import Path

import actcodec
import torch
from actcodec.backends.triton.scales import near_zero
from actcodec.codecs.compressed import Compressed
from triton.runtime.interpreter import GridExecutor
from triton.runtime.jit import mangle_type

SATURATING = {"nonfinite": "saturate"}
CODECS = (
    ("sfpr", {}),
    ("sfpr", SATURATING),
    ("sfpr+zvc", {}),
    ("jpeg-act", {}),
    ("jpeg-act", SATURATING),
    ("jpeg-act", {"const_bits": 13, "pass1_bits": 4}),
    ("jpeg-gmc", {}),
    ("brc", {}),
    ("division", {"range": "channel"}),
    ("division", {"range": "block", "rounding": "nearest"}),
    ("actnn", {}),
    ("blpa", {}),
    ("autoquant", {}),
    ("int8-rows", {}),
    *((name, {"scale": rule}) for name in ("mxint8", "mxfp6-e3m2") for rule in ("floor", "rceil")),
    ("nvfp4", {}),
    ("actnn-sample", {"bits": 3}),
    ("actnn-sample", {"bits": 2, "rounding": "nearest"}),
)
FORMATS = (torch.float32, torch.bfloat16, torch.float16)
#: The last has extents of 1, which Triton makes constants.
TENSORS = (*(((2, 3, 9, 17), dtype) for dtype in FORMATS), ((1, 1, 8, 8), torch.float32))


def described(value, annotation):
    """Type and value of an argument, as Triton would see it at a launch."""
    if annotation == "tl.constexpr" or (isinstance(value, int) and value == 1):
        return ["constexpr", value if isinstance(value, (int, float, tuple)) else value.name]
    return [mangle_type(value), None]


def main():
    launches = set()
    run = GridExecutor.__call__

    def recording(self, *arguments, **others):
        values = {**dict(zip(self.arg_names, arguments, strict=False)), **others}
        kinds = inspect.get_annotations(self.fn)
        parameters = {name: described(values[name], kinds[name]) for name in self.arg_names}
        launches.add(json.dumps([self.fn.__module__, self.fn.__name__, parameters]))
        return run(self, *arguments, **others)

    GridExecutor.__call__ = recording
    for name, options in CODECS:
        for shape, dtype in TENSORS:
            codec = actcodec.codec(name, backend="triton", **options)
            x = torch.randn(shape).to(dtype)
            packed = codec.compress(x)
            codec.decompress(packed)
            near_zero(x.flatten(2))
            if options == SATURATING:  # statistics with infinite values give no scales
                x.view(-1)[0] = torch.inf
                codec.compress(x)
            if isinstance(packed, Compressed):  # a copy of the payload does not remember its blocks
                codec.decompress(replace(packed, payload=packed.payload.clone()))
    mixed = actcodec.codec("actnn-sample", backend="triton", bits=torch.tensor([2, 3]))
    mixed.decompress(mixed.compress(torch.randn(2, 3, 37)))
    Path(sys.argv[1]).write_text(json.dumps([json.loads(launch) for launch in sorted(launches)]))


if __name__ == "__main__":
    main()
