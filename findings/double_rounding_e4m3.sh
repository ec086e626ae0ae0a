#!/usr/bin/env bash
# torch 2.13.0 and ml_dtypes 0.6.0 convert float64 to E4M3 by way of float32 and so round twice: a number just above the middle of two goes
# to the lower one (17 + 2^-40 to 16, though 18 is nearer). JAX 0.10.2 with x64 rounds once.
# Seen: results for two numbers. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
torch: 17 + 2^-40 to 16, 19 - 2^-40 to 20
ml_dtypes: 17 + 2^-40 to 16, 19 - 2^-40 to 20
JAX: 17 + 2^-40 to 18, 19 - 2^-40 to 18
SEEN

cat >"$folder/ask.py" <<'ASK'
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch

jax.config.update("jax_enable_x64", True)
numbers = np.array([17 + 2.0**-40, 19 - 2.0**-40])
made = {
    "torch": torch.from_numpy(numbers).to(torch.float8_e4m3fn).double().numpy(),
    "ml_dtypes": numbers.astype(ml_dtypes.float8_e4m3fn).astype(np.float64),
    "JAX": np.asarray(jax.jit(lambda x: x.astype(jnp.float8_e4m3fn))(numbers)).astype(np.float64),
}
for library, (above, below) in made.items():
    print(f"{library}: 17 + 2^-40 to {above:g}, 19 - 2^-40 to {below:g}")
ASK

JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
