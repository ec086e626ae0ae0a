#!/usr/bin/env bash
# Triton 3.7.1 with TRITON_INTERPRET=1: a conversion of float32 to E5M2 (float8e5) loses the carry of its rounding, as that to E4M3 does:
# 7.9 becomes 4, where torch gives 8; 0.97, whose exponent has an even code, becomes 1. What lies far beyond 57344 becomes
# NaN, where torch gives infinity.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 triton==3.7.1 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
7.9: interpreter 4, torch 8
1.9: interpreter 1, torch 2
0.97: interpreter 1, torch 1
57344: interpreter 57344, torch 57344
1e9: interpreter nan, torch inf
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
import triton
import triton.language as tl

NUMBERS = ["7.9", "1.9", "0.97", "57344", "1e9"]


@triton.jit
def convert(x, y, count: tl.constexpr):
    """Converts numbers and stores their bytes."""
    place = tl.arange(0, count)
    tl.store(y + place, tl.load(x + place).to(tl.float8e5).to(tl.uint8, bitcast=True))


numbers = torch.zeros(8)
numbers[: len(NUMBERS)] = torch.tensor([float(name) for name in NUMBERS])
made = torch.zeros(8, dtype=torch.uint8)
convert[(1,)](numbers, made, 8)
interpreted, wanted = made.view(torch.float8_e5m2).float().tolist(), numbers.to(torch.float8_e5m2).float().tolist()
for name, one, other in zip(NUMBERS, interpreted, wanted):
    print(f"{name}: interpreter {one:g}, torch {other:g}")
ASK

TRITON_INTERPRET=1 "$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
