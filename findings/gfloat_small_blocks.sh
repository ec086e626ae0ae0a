#!/usr/bin/env bash
# gfloat 0.5.2, quantize_block with format_info_mxfp8_e4m3: blocks of small numbers come back exactly down to the scale 2^-127.
# Seen: the ratio of what comes back to what was given, for a block with this number and 31 zeros. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gfloat==0.5.2 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
amax of 2^-118: 1
amax of 2^-119: 1
amax of 1.75 * 2^-119: 1
amax of 2^-126: 1
amax of 2^-127: 1
amax of 2^-140: 0
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy as np
from gfloat import compute_scale_amax, quantize_block
from gfloat.formats import format_info_mxfp8_e4m3

GREATEST = {"2^-118": 2.0**-118, "2^-119": 2.0**-119, "1.75 * 2^-119": 1.75 * 2.0**-119, "2^-126": 2.0**-126, "2^-127": 2.0**-127, "2^-140": 2.0**-140}

for name, number in GREATEST.items():
    block = np.zeros(32)
    block[0] = number
    print(f"amax of {name}: {quantize_block(format_info_mxfp8_e4m3, block, compute_scale_amax)[0] / number:g}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
