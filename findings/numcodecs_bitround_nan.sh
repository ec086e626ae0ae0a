#!/usr/bin/env bash
# numcodecs 0.16.6, BitRound(keepbits=7): rounding carries into exponent and sign. A NaN with all bits set becomes zero of the other sign,
# a NaN with a small payload becomes infinity, the greatest finite number becomes infinity; the usual NaN 0x7fc00000 stays.
# Seen: bits of float32 before and after. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numcodecs==0.16.6 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
0x7fffffff: 0x80000000
0xffffffff: 0x0
0x7f800001: 0x7f800000
0x7fc00000: 0x7fc00000
0x7f7fffff: 0x7f800000
0x7f800000: 0x7f800000
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy as np
from numcodecs import BitRound

PATTERNS = [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000, 0x7F7FFFFF, 0x7F800000]

values = np.array(PATTERNS, np.uint32).view(np.float32)
made = np.asarray(BitRound(keepbits=7).encode(values)).view(np.uint32)
for before, after in zip(PATTERNS, made):
    print(f"{before:#x}: {int(after):#x}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
