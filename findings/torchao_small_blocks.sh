#!/usr/bin/env bash
# torchao 0.18.0, prototype.mx_formats, E4M3 elements: blocks whose greatest magnitude is 2^-119 or less do not come back.
# With FLOOR every number is half of what it was, with RCEIL it is zero: a scale of 2^-127 is stored, and another one is divided by.
# Seen: the ratio of what comes back to what was given, for a block with this number and 31 zeros. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torchao==0.18.0 torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
FLOOR of 2^-118: 1
FLOOR of 2^-119: 0.5
FLOOR of 1.75 * 2^-119: 0.5
FLOOR of 2^-126: 0.5
FLOOR of 2^-127: 0.5
FLOOR of 2^-140: 0
RCEIL of 2^-118: 1
RCEIL of 2^-119: 0
RCEIL of 1.75 * 2^-119: 0
RCEIL of 2^-126: 0
RCEIL of 2^-127: 0
RCEIL of 2^-140: 0
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import MXTensor

GREATEST = {"2^-118": 2.0**-118, "2^-119": 2.0**-119, "1.75 * 2^-119": 1.75 * 2.0**-119, "2^-126": 2.0**-126, "2^-127": 2.0**-127, "2^-140": 2.0**-140}

for rule in (ScaleCalculationMode.FLOOR, ScaleCalculationMode.RCEIL):
    for name, number in GREATEST.items():
        block = torch.zeros(32)
        block[0] = number
        made = MXTensor.to_mx(block, torch.float8_e4m3fn, block_size=32, scaling_mode=rule).dequantize(torch.float32)
        print(f"{rule.name} of {name}: {made[0].item() / number:g}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
