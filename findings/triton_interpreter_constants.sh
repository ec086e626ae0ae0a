#!/usr/bin/env bash
# Triton 3.7.1, the release that torch 2.13.0 asks for: a kernel may have a tl.constexpr of its module on the left of an operator and a
# tensor on the right. The compiler takes it; with TRITON_INTERPRET=1 it ends in an error, while the same constant on the right works.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 triton==3.7.1 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
TRITON_INTERPRET=0
value + THREE: compiled
THREE + value: compiled
THREE - value: compiled
THREE * value: compiled
THREE & value: compiled
THREE << value: compiled
(THREE < value).to(tl.int32): compiled
TRITON_INTERPRET=1
value + THREE: [4, 7]
THREE + value: TypeError
THREE - value: TypeError
THREE * value: TypeError
THREE & value: TypeError
THREE << value: TypeError
(THREE < value).to(tl.int32): InterpreterError
SEEN

cat >"$folder/ask.py" <<'ASK'
import importlib
import sys

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.interpreter import InterpretedFunction

KERNEL = """
import triton
import triton.language as tl

THREE = tl.constexpr(3)


@triton.jit
def kernel(x, y, count: tl.constexpr):
    place = tl.arange(0, count)
    value = tl.load(x + place)
    tl.store(y + place, {})
"""
FORMS = ("value + THREE", "THREE + value", "THREE - value", "THREE * value", "THREE & value", "THREE << value", "(THREE < value).to(tl.int32)")

for number, form in enumerate(FORMS):
    name = f"kernel_{number}"
    with open(f"{sys.argv[1]}/{name}.py", "w") as file:
        file.write(KERNEL.format(form))
    kernel = importlib.import_module(name).kernel
    try:
        if isinstance(kernel, InterpretedFunction):
            made = torch.zeros(2, dtype=torch.int32)
            kernel[(1,)](torch.tensor([1, 4], dtype=torch.int32), made, 2)
            print(f"{form}: {made.tolist()}")
        else:
            source = ASTSource(kernel, signature={"x": "*i32", "y": "*i32", "count": "constexpr"}, constexprs={"count": 2})
            triton.compile(source, target=GPUTarget("cuda", 80, 32))
            print(f"{form}: compiled")
    except Exception as error:
        print(f"{form}: {'TypeError' if 'TypeError' in repr(error) else type(error).__name__}")
ASK

for interpret in 0 1; do
    echo "TRITON_INTERPRET=$interpret"
    TRITON_INTERPRET=$interpret TRITON_CACHE_DIR="$folder/cache" PYTHONPATH="$folder" "$folder/venv/bin/python" "$folder/ask.py" "$folder" 2>"$folder/errors"
done >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
