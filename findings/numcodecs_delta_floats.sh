#!/usr/bin/env bash
# numcodecs 0.16.6, Delta(dtype="f4"): the filter, which has no bound of an error, is lossy on floats, as differences are rounded; what
# follows a large number is lost, and the numbers behind it are off for good.
# Seen: what comes back of 1e30, 1, 2, 3. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check numcodecs==0.16.6 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
[1e+30, 0.0, 1.0, 2.0]
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy as np
from numcodecs import Delta

codec = Delta(dtype="f4")
print([float(f"{value:.3g}") for value in codec.decode(codec.encode(np.array([1e30, 1, 2, 3], np.float32)))])
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
