#!/usr/bin/env bash
# ml_dtypes 0.6.0: the sum of an array of E8M0 is NaN, whatever is in it, since numpy begins a sum with zero, which the format does not
# have. numpy.zeros makes 2^-127 of it, which does not compare equal to 0.
# Seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ml_dtypes==0.6.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
sum of three ones: nan
zeros: 2^-127, equal to 0: False
SEEN

cat >"$folder/ask.py" <<'ASK'
import ml_dtypes
import numpy as np

kind = ml_dtypes.float8_e8m0fnu
print(f"sum of three ones: {float(np.ones(3, kind).sum())}")
(zero,) = np.zeros(1, kind)
print(f"zeros: 2^{np.log2(float(zero)):g}, equal to 0: {bool(zero == 0)}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
