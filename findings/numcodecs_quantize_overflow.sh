#!/usr/bin/env bash
# numcodecs 0.16.6, Quantize(digits=2, dtype="f4"): finite numbers of float32 above 2.6e36 become infinity, since they are multiplied by 128
# before they are rounded and divided again; so do those of float16 above 511. Nothing is said.
# Seen: what comes back of each number. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numcodecs==0.16.6 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
float32 1e+36: finite
float32 3e+36: infinite
float32 3e+38: infinite
float16 511: finite
float16 513: infinite
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy as np
from numcodecs import Quantize

for kind, numbers in (("float32", (1e36, 3e36, 3e38)), ("float16", (511, 513))):
    for number in numbers:
        (made,) = np.asarray(Quantize(digits=2, dtype=kind).encode(np.array([number], kind)))
        print(f"{kind} {number:g}: {'finite' if np.isfinite(made) else 'infinite'}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
