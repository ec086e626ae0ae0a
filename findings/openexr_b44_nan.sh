#!/usr/bin/env bash
# OpenEXR 3.5.3, B44 compression of half floats: NaN and infinity become small negative numbers, and the other 15 numbers of their
# block of 4 x 4, which come back exactly without them, are off by up to 13 % of the greatest. float32 channels are stored as they
# are.
# Seen: the greatest error of numbers relative to the greatest one, and what NaN and infinity became. Exit code 1 when they are
# others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openexr==3.5.3 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
float16, numbers: error 0.0000
float16, with NaN: error 0.1290, NaN to -3.76e-06
float16, with infinity: error 0.1290, infinity to -3.76e-06
float32, with infinity: error 0.0000, infinity to inf
SEEN

cat >"$folder/ask.py" <<'ASK'
import os
import sys

import numpy as np
import OpenEXR

path = os.path.join(sys.argv[1], "block.exr")


def ask(name, dtype, bad=None):
    block = (1 + np.arange(16).reshape(4, 4) / 16).astype(dtype)
    if bad is not None:
        block[2, 1] = bad
    with OpenEXR.File({"compression": OpenEXR.B44_COMPRESSION, "type": OpenEXR.scanlineimage}, {"Y": block}) as file:
        file.write(path)
    with OpenEXR.File(path) as file:
        back = file.channels()["Y"].pixels.astype(np.float64)
    numbers = np.isfinite(block)
    error = np.abs(back - block)[numbers].max() / np.abs(block[numbers]).max()
    print(f"{np.dtype(dtype)}, {name}: error {error:.4f}{'' if bad is None else f', {name[5:]} to {back[2, 1]:.3g}'}")


ask("numbers", np.float16)
ask("with NaN", np.float16, np.nan)
ask("with infinity", np.float16, np.inf)
ask("with infinity", np.float32, np.inf)
ASK

"$folder/venv/bin/python" "$folder/ask.py" "$folder" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
