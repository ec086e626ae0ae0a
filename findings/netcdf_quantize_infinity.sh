#!/usr/bin/env bash
# netCDF4 1.7.5.1 (netCDF-C 4.10.1), quantize modes of float32 variables: Granular BitRound stores infinity as zero of the other
# sign. BitGroom shaves bits at even places and sets them at odd ones, so infinity becomes NaN at every second place of an
# array. BitRound keeps infinity, and so do all modes NaN.
# Seen: what is read back of infinities at both kinds of places. Exit code 1 when it is something else.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check netcdf4==1.7.5.1.post1 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
BitGroom: inf, nan, -inf, nan, nan
BitRound: inf, inf, -inf, -inf, nan
GranularBitRound: -0, -0, 0, 0, nan
SEEN

cat >"$folder/ask.py" <<'ASK'
import os
import sys

import netCDF4
import numpy as np

values = np.array([np.inf, np.inf, -np.inf, -np.inf, np.nan], np.float32)
for mode in ("BitGroom", "BitRound", "GranularBitRound"):
    path = os.path.join(sys.argv[1], f"{mode}.nc")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("n", len(values))
        variable = file.createVariable("v", "f4", ("n",), quantize_mode=mode, significant_digits=3)
        variable.set_auto_mask(False)
        variable[:] = values
    with netCDF4.Dataset(path) as file:
        file["v"].set_auto_mask(False)
        print(f"{mode}: {', '.join(f'{value:g}' for value in file['v'][:])}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" "$folder" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
