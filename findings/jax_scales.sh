#!/usr/bin/env bash
# JAX 0.10.2 on the CPU, compiled by jit: conversions of float32 to E8M0 and E4M3 have no zero and do not saturate.
# E8M0: zero and negative numbers become NaN, numbers below 2^-127 become 2^-127; ties go up. E4M3: what rounds beyond 448 becomes NaN.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
E8M0 of 0: NaN
E8M0 of -1: NaN
E8M0 of 0.75: 2^0
E8M0 of 1.25: 2^0
E8M0 of 1.5: 2^1
E8M0 of 3: 2^2
E8M0 of 2^-127: 2^-127
E8M0 of 2^-128: 2^-127
E8M0 of inf: NaN
E4M3 of 464: 448
E4M3 of 480: NaN
E4M3 of 500: NaN
E4M3 of -500: NaN
E4M3 of inf: NaN
E4M3 of NaN: NaN
SEEN

cat >"$folder/ask.py" <<'ASK'
import jax
import jax.numpy as jnp
import numpy as np

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


def bytes_of(numbers, kind):
    """The bytes of a conversion within a compiled function."""
    convert = jax.jit(lambda x: x.astype(kind))
    return np.asarray(convert(jnp.asarray(list(numbers.values()), jnp.float32))).view(np.uint8)


for name, byte in zip(E8M0, bytes_of(E8M0, jnp.float8_e8m0fnu)):
    print(f"E8M0 of {name}: {e8m0(byte)}")
for name, byte in zip(E4M3, bytes_of(E4M3, jnp.float8_e4m3fn)):
    print(f"E4M3 of {name}: {e4m3(byte)}")
ASK

JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
