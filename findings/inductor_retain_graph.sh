#!/usr/bin/env bash
# torch 2.13.0 (CPU): whether backward(retain_graph=True) of a compiled network is allowed depends on the batches before it.
# The first batch, compiled for its size, may go back twice; one of a second size, for which torch compiles with any number of
# rows, is refused, as that graph takes the buffers of saved tensors for its own. From then on the first size is refused too:
# the graph for any number of rows is asked before the one that was compiled for that size.
# Seen: for each batch, in this order in one process, whether two backward passes are allowed. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
64 rows: allowed
128 rows: refused
64 rows: refused
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
from torch import nn

model = torch.compile(nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 8)))
for rows in (64, 128, 64):
    loss = model(torch.randn(rows, 32)).square().mean()
    try:
        loss.backward(retain_graph=True)
        loss.backward()
        print(f"{rows} rows: allowed")
    except RuntimeError as error:
        assert "donated buffers" in str(error)
        print(f"{rows} rows: refused")
ASK

TORCHINDUCTOR_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" "$folder/ask.py" >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
