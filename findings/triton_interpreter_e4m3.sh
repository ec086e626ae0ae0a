#!/usr/bin/env bash
# Triton 3.7.1, the release that torch 2.13.0 asks for, with TRITON_INTERPRET=1: a conversion of float32 to E4M3 (float8e4nv) loses the
# carry of its rounding where the code of the exponent is odd. 500 and infinity become 256, NaN becomes 384, and numbers within the range
# of the format that round up to a power of two become half of it: 7.9 becomes 4. 464, the tie of 448 and the next number, becomes NaN.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 triton==3.7.1 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
E4M3 of 464: NaN
E4M3 of 480: NaN
E4M3 of 500: 256
E4M3 of -500: -256
E4M3 of inf: 256
E4M3 of NaN: 384
E4M3 of 7.9: 4
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
import triton
import triton.language as tl

E4M3 = {"464": 464.0, "480": 480.0, "500": 500.0, "-500": -500.0, "inf": float("inf"), "NaN": float("nan"), "7.9": 7.9}


def e4m3(byte):
    """The number that a byte of E4M3 without infinity stands for."""
    sign, exponent, fraction = -1 if byte >> 7 else 1, int(byte) >> 3 & 15, int(byte) & 7
    if exponent == 15 and fraction == 7:
        return "NaN"
    return f"{sign * (fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)):g}"


@triton.jit
def convert(x, y, count: tl.constexpr):
    """Converts numbers and stores their bytes."""
    place = tl.arange(0, count)
    tl.store(y + place, tl.load(x + place).to(tl.float8e4nv).to(tl.uint8, bitcast=True))


numbers = torch.zeros(8)
numbers[: len(E4M3)] = torch.tensor(list(E4M3.values()))
made = torch.zeros(8, dtype=torch.uint8)
convert[(1,)](numbers, made, 8)
for name, byte in zip(E4M3, made.tolist()):
    print(f"E4M3 of {name}: {e4m3(byte)}")
ASK

TRITON_INTERPRET=1 "$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
