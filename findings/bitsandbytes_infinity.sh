#!/usr/bin/env bash
# bitsandbytes 0.50.2 with torch 2.13.0, quantize_blockwise to 8 bits on a CPU: NaN comes back as about minus the greatest number of
# its block, so nothing that looks for NaN finds it. Infinity of either sign comes back as minus infinity, and the other numbers
# of its block, negative ones too, as plus infinity. A block of zeros comes back as minus zeros.
# Seen: a block of -1, 2, 3, 4 with a bad number in place of the 3, and a block of zeros. Exit code 1 when they are others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check bitsandbytes==0.50.2 torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
-1, 2, 3, 4: -0.991, 2, 3.02, 4
-1, 2, nan, 4: -0.991, 2, -3.97, 4
-1, 2, inf, 4: inf, inf, -inf, inf
-1, 2, -inf, 4: inf, inf, -inf, inf
zeros: -0, -0, -0, -0
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
from bitsandbytes import functional

for name, third in (("3", 3.0), ("nan", torch.nan), ("inf", torch.inf), ("-inf", -torch.inf)):
    block = torch.ones(256)
    block[:4] = torch.tensor([-1, 2, third, 4])
    codes, state = functional.quantize_blockwise(block, blocksize=256)
    back = functional.dequantize_blockwise(codes, state)
    print(f"-1, 2, {name}, 4: {', '.join(f'{value:.3g}' for value in back[:4])}")
back = functional.dequantize_blockwise(*functional.quantize_blockwise(torch.zeros(256), blocksize=256))
print(f"zeros: {', '.join(f'{value:g}' for value in back[:4])}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
