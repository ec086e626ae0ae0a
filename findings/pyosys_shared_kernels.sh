#!/usr/bin/env bash
# pyosys 0.70 with torch 2.13.0 (CPU): `import pyosys` leaves the flag RTLD_GLOBAL in sys.setdlopenflags, so that libraries
# loaded later share their names. Each kernel that inductor writes is a library with one function, `kernel`: after the import
# the second compiled function runs the kernel of the first and returns its values, without a warning.
# Seen: the flag, and 2 x and x + 10 of x = 1 by functions compiled in that order. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 pyosys==0.70

cat >"$folder/seen" <<'SEEN'
without pyosys: global names False, 2 x = 2.0, x + 10 = 11.0
with pyosys: global names True, 2 x = 2.0, x + 10 = 2.0
SEEN

cat >"$folder/ask.py" <<'ASK'
import os
import sys

import torch

if sys.argv[1] == "with":
    import pyosys

shared = bool(sys.getdlopenflags() & os.RTLD_GLOBAL)
x = torch.ones(4096)
twice, more = torch.compile(lambda x: x * 2), torch.compile(lambda x: x + 10)
first, second = twice(x)[0].item(), more(x)[0].item()
print(f"{sys.argv[1]} pyosys: global names {shared}, 2 x = {first}, x + 10 = {second}")
ASK

for way in without with; do
    TORCHINDUCTOR_CACHE_DIR="$folder/$way" "$folder/venv/bin/python" "$folder/ask.py" "$way"
done >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
