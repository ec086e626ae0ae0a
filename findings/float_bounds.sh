#!/usr/bin/env bash
# imagecodecs 2026.3.6 (LERC, SPERR, SZ3): error bounds of floats far from zero. SZ3 keeps a bound of 0.1. The values that LERC
# (its level, maxZError) and SPERR (mode pwe) return differ from those that they were given by more: the sum of an offset and a
# step is rounded to float32 after the error has been bounded. Nothing says so; in float64 both keep the bound.
# Seen: greatest error by the middle of the values. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check imagecodecs==2026.3.6 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
float32, around 0: LERC 0.0999
float32, around 0: SPERR 0.0999
float32, around 0: SZ3 0.1000
float32, around 100000: LERC 0.1016 above the bound
float32, around 100000: SPERR 0.1016 above the bound
float32, around 100000: SZ3 0.0938
float32, around 1000000: LERC 0.1250 above the bound
float32, around 1000000: SPERR 0.1250 above the bound
float32, around 1000000: SZ3 0.0625
float64, around 0: LERC 0.0999
float64, around 0: SPERR 0.0999
float64, around 0: SZ3 0.1000
float64, around 100000: LERC 0.0999
float64, around 100000: SPERR 0.0999
float64, around 100000: SZ3 0.1000
float64, around 1000000: LERC 0.0999
float64, around 1000000: SPERR 0.0999
float64, around 1000000: SZ3 0.1000
SEEN

cat >"$folder/ask.py" <<'ASK'
import imagecodecs as codecs
import numpy as np

BOUND = 0.1
ways = {
    "LERC": (lambda x: codecs.lerc_encode(x, level=BOUND), codecs.lerc_decode),
    "SPERR": (lambda x: codecs.sperr_encode(x, level=BOUND, mode="pwe"), codecs.sperr_decode),
    "SZ3": (lambda x: codecs.sz3_encode(x, mode="abs", abs=BOUND), None),
}
noise = np.random.default_rng(0).standard_normal((64, 64))
for kind in (np.float32, np.float64):
    for middle in (0, 100_000, 1_000_000):
        x = (noise + middle).astype(kind)
        for name, (encode, decode) in ways.items():
            data = encode(x)
            back = decode(data) if decode else codecs.sz3_decode(data, shape=x.shape, dtype=x.dtype)
            error = np.abs(np.asarray(back, np.float64) - np.asarray(x, np.float64)).max()
            print(f"{kind.__name__}, around {middle}: {name} {error:.4f}{' above the bound' if error > BOUND else ''}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" >"$folder/now"
diff "$folder/seen" "$folder/now" && echo "as seen"
