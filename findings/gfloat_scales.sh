#!/usr/bin/env bash
# gfloat 0.5.2: round_float to E8M0 gives zero, negative numbers and numbers below 2^-127 back as they are, though the format has none of
# them; encode_float makes NaN of them. Ties go to the even exponent (0.75 to 0.5, 3 to 2). E4M3 without sat: NaN beyond 448.
# Behaviour and output seen: below (a number in brackets: what round_float gives). Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check gfloat==0.5.2 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
E8M0 of 0: NaN (0)
E8M0 of -1: NaN (-1)
E8M0 of 0.75: 2^-1 (0.5)
E8M0 of 1.25: 2^0 (1)
E8M0 of 1.5: 2^1 (2)
E8M0 of 3: 2^1 (2)
E8M0 of 2^-127: 2^-127 (5.87747e-39)
E8M0 of 2^-128: NaN (2.93874e-39)
E8M0 of inf: NaN (nan)
E4M3 of 464: 448 (448)
E4M3 of 480: NaN (nan)
E4M3 of 500: NaN (nan)
E4M3 of -500: NaN (nan)
E4M3 of inf: NaN (nan)
E4M3 of NaN: NaN (nan)
SEEN

cat >"$folder/ask.py" <<'ASK'
from gfloat import encode_float, round_float
from gfloat.formats import format_info_ocp_e4m3, format_info_ocp_e8m0

E8M0 = {"0": 0.0, "-1": -1.0, "0.75": 0.75, "1.25": 1.25, "1.5": 1.5, "3": 3.0, "2^-127": 2.0**-127, "2^-128": 2.0**-128, "inf": float("inf")}
E4M3 = {"464": 464.0, "480": 480.0, "500": 500.0, "-500": -500.0, "inf": float("inf"), "NaN": float("nan")}


def e8m0(byte):
    """The number that a byte of E8M0 stands for."""
    return "NaN" if byte == 255 else f"2^{int(byte) - 127}"


def e4m3(byte):
    """The number that a byte of E4M3 without infinity stands for."""
    sign, exponent, fraction = -1 if byte >> 7 else 1, int(byte) >> 3 & 15, int(byte) & 7
    if exponent == 15 and fraction == 7:
        return "NaN"
    return f"{sign * (fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)):g}"


def show(kind, shown, number):
    """A rounded number as its byte says, and as it is."""
    rounded = round_float(kind, number)
    return f"{shown(encode_float(kind, rounded))} ({rounded:g})"


for name, number in E8M0.items():
    print(f"E8M0 of {name}: {show(format_info_ocp_e8m0, e8m0, number)}")
for name, number in E4M3.items():
    print(f"E4M3 of {name}: {show(format_info_ocp_e4m3, e4m3, number)}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
