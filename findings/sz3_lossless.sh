#!/usr/bin/env bash
# SZ3 3.3.2, that of imagecodecs 2026.3.6: an absolute error bound of a thousandth on a random walk of float32 gives a lossless stream,
# without a word, more than twice as large as that of SZ3 3.4.0 (pysz 1.1.0) at the same bound; at a hundredth it is a third larger.
# Seen: bytes of both, and the greatest error of what comes back as a part of the bound. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check imagecodecs==2026.3.6 pysz==1.1.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
bound 0.1: 3.3.2 55145 bytes, error 1.00; 3.4.0 52081 bytes, error 1.00
bound 0.01: 3.3.2 107006 bytes, error 1.00; 3.4.0 79992 bytes, error 1.00
bound 0.001: 3.3.2 243404 bytes, error 0.00; 3.4.0 111651 bytes, error 1.00
bound 0.0001: 3.3.2 243404 bytes, error 0.00; 3.4.0 162135 bytes, error 1.00
SEEN

cat >"$folder/ask.py" <<'ASK'
import imagecodecs
import numpy as np
import pysz

steps = np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32)
walk = np.cumsum(steps, 1).astype(np.float32)
for bound in (0.1, 0.01, 0.001, 0.0001):
    old = imagecodecs.sz3_encode(walk, mode="abs", abs=bound)
    config = pysz.szConfig()
    config.errorBoundMode, config.absErrorBound = pysz.szErrorBoundMode.ABS, bound
    new, _ = pysz.sz.compress(walk, config)
    back = imagecodecs.sz3_decode(old, walk.shape, walk.dtype), pysz.sz.decompress(new, walk.dtype, walk.shape)[0]
    errors = [np.abs(values - walk).max() / bound for values in back]
    print(f"bound {bound}: 3.3.2 {len(old)} bytes, error {errors[0]:.2f}; 3.4.0 {new.nbytes} bytes, error {errors[1]:.2f}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
