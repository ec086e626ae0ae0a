#!/usr/bin/env bash
# fpzip 1.2.5: a precision below 9 bits of float32, or 12 of float64, cuts bits of the exponent, so NaN and infinity become a
# large finite number of their sign, and 1.7 becomes 0.5. At 9 and 12 bits, which leave no fraction, NaN becomes infinity.
# Seen: what comes back by precision. Exit code 1 when it is something else.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fpzip==1.2.5 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
float32, 6 bits: 2.66e+36, 2.66e+36, -2.66e+36, 0.00781, -0.00781
float32, 8 bits: 1.7e+38, 1.7e+38, -1.7e+38, 0.5, -0.5
float32, 9 bits: inf, inf, -inf, 1, -1
float32, 10 bits: nan, inf, -inf, 1.5, -1.5
float64, 8 bits: 5.49e+303, 5.49e+303, -5.49e+303, 3.05e-05, -3.05e-05
float64, 10 bits: 2.25e+307, 2.25e+307, -2.25e+307, 0.125, -0.125
float64, 12 bits: inf, inf, -inf, 1, -1
float64, 14 bits: nan, inf, -inf, 1.5, -1.5
SEEN

cat >"$folder/ask.py" <<'ASK'
import fpzip
import numpy as np

for dtype, precisions in ((np.float32, (6, 8, 9, 10)), (np.float64, (8, 10, 12, 14))):
    for precision in precisions:
        values = np.array([[[[np.nan, np.inf, -np.inf, 1.7, -1.7]]]], dtype)
        back = fpzip.decompress(fpzip.compress(values, precision=precision)).ravel()
        print(f"{np.dtype(dtype)}, {precision} bits: {', '.join(f'{value:.3g}' for value in back)}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
