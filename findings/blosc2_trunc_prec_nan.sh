#!/usr/bin/env bash
# blosc2 4.14.1, filter TRUNC_PREC with 7 bits of fraction, on float32: a NaN whose payload is in its low bits comes back as infinity.
# Seen: bits of float32 before and after. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check blosc2==4.14.1 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
0x7fffffff: 0x7fff0000
0xffffffff: 0xffff0000
0x7f800001: 0x7f800000
0x7fc00000: 0x7fc00000
0x7f7fffff: 0x7f7f0000
0x7f800000: 0x7f800000
SEEN

cat >"$folder/ask.py" <<'ASK'
import blosc2
import numpy as np

PATTERNS = [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000, 0x7F7FFFFF, 0x7F800000]

values = np.array(PATTERNS * 64, np.uint32).view(np.float32)
settings = {"filters": [blosc2.Filter.TRUNC_PREC], "filters_meta": [7], "typesize": 4}
made = np.frombuffer(blosc2.decompress2(blosc2.compress2(values, **settings)), np.uint32)
for before, after in zip(PATTERNS, made):
    print(f"{before:#x}: {int(after):#x}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
