#!/usr/bin/env bash
# torch 2.13.0 (CPU): grouped_mm, the matrix product of a mixture of experts, computes float32, float16 and bfloat16. On tensors
# without values (meta, FakeTensorMode) the same call takes bfloat16 alone, and so does torch.compile: Mixtral of transformers
# trains on a CPU in float32, but neither compiles nor runs on fake tensors. Its backward refuses a gradient that was expanded, as
# that of a sum is, with "Invalid strides/sizes", and takes the dense gradient of a sum of squares.
# Seen: the dtype that comes out, or the error. Exit code 1 when they are others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
float32: values float32, of sum RuntimeError, of squares float32, meta RuntimeError, compiled TorchRuntimeError
float16: values float16, of sum RuntimeError, of squares float16, meta RuntimeError, compiled TorchRuntimeError
bfloat16: values bfloat16, of sum RuntimeError, of squares bfloat16, meta bfloat16, compiled bfloat16
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
from torch.nn import functional

ENDS = torch.tensor([4, 8], dtype=torch.int32)


def product(x, weight):
    return functional.grouped_mm(x, weight, offs=ENDS.to(x.device))


def gradient(x, weight, loss):
    x = x.requires_grad_()
    loss(product(x, weight)).backward()
    return x.grad


def found(call, x, weight):
    try:
        return str(call(x, weight).dtype).removeprefix("torch.")
    except Exception as error:
        return type(error).__name__


for name in ("float32", "float16", "bfloat16"):
    x, weight = torch.rand(8, 16).to(getattr(torch, name)), torch.rand(2, 16, 16).to(getattr(torch, name))
    calls = {
        "values": product,
        "of sum": lambda *both: gradient(*both, torch.sum),
        "of squares": lambda *both: gradient(*both, lambda y: y.square().sum()),
        "meta": lambda *both: product(*(one.to("meta") for one in both)),
        "compiled": torch.compile(product, backend="eager"),
    }
    print(f"{name}: " + ", ".join(f"{kind} {found(call, x.detach(), weight)}" for kind, call in calls.items()))
ASK

"$folder/venv/bin/python" "$folder/ask.py" >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
