#!/usr/bin/env bash
# gguf 0.19.0, quantizers in Python: a NaN or an infinity makes all 32 numbers of an MXFP4 block zero, while Q4_0 and Q8_0 give
# NaN for the block. OCP's MX has a NaN scale for such a block. Ties are rounded towards zero (1.75 to 1.5), and
# not to even as in OCP's conversion from float32.
# Seen: sums of blocks with one bad number, and what becomes of ties. Exit code 1 when they are others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gguf==0.19.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
Q4_0: sum with NaN nan, with infinity nan
Q8_0: sum with NaN nan, with infinity nan
MXFP4: sum with NaN 0, with infinity 0
MXFP4: 0.25 to 0, 0.75 to 0.5, 1.25 to 1, 1.75 to 1.5, 2.5 to 2, 3.5 to 3, 5 to 4, 6 to 6
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy as np
from gguf import GGMLQuantizationType, quants

np.seterr(all="ignore")


def back(values, name):
    kind = GGMLQuantizationType[name]
    return quants.dequantize(quants.quantize(values, kind), kind)


for name in ("Q4_0", "Q8_0", "MXFP4"):
    sums = []
    for bad in (np.nan, np.inf):
        block = np.ones(32, np.float32)
        block[5] = bad
        sums.append(back(block, name).sum())
    print(f"{name}: sum with NaN {sums[0]:g}, with infinity {sums[1]:g}")
ties = np.zeros(32, np.float32)
ties[:8] = 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6
print("MXFP4:", ", ".join(f"{tie:g} to {number:g}" for tie, number in zip(ties[:8], back(ties, "MXFP4"))))
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
