#!/usr/bin/env bash
# torch 2.13.0: inductor's cache of compiled graphs does not ask for which vectors their C++ was written (x86 with AVX2).
# A process with ATEN_CPU_CAPABILITY=avx2 takes the graph that one with ATEN_CPU_CAPABILITY=default left, and runs scalar code;
# the setting cpp.simdlen, which says the same, is part of the key. Where processes on unlike CPUs share a cache, the C++ may be
# for longer vectors than the compiler has then.
# Seen: for each process the hits in the cache, and whether the C++ that ran has vectors. Exit code 1 when it is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
default: 0 hits, vectors: False
avx2 with the cache of default: 1 hits, vectors: False
avx2 with a cache of its own: 0 hits, vectors: True
simdlen 0: 0 hits, vectors: False
simdlen 256 with the cache of simdlen 0: 0 hits, vectors: True
SEEN

cat >"$folder/ask.py" <<'ASK'
import sys

import torch
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.utils import run_and_get_code

if len(sys.argv) > 2:
    config.cpp.simdlen = int(sys.argv[2])
_, (code,) = run_and_get_code(torch.compile(lambda x: x * 3 + 1), torch.arange(4096.0))
print(f"{sys.argv[1]}: {counters['inductor']['fxgraph_cache_hit']} hits, vectors: {'Vectorized' in code}")
ASK

ask() { TORCHINDUCTOR_CACHE_DIR="$folder/$1" ATEN_CPU_CAPABILITY=$2 "$folder/venv/bin/python" "$folder/ask.py" "${@:3}"; }
{
    ask shared default "default"
    ask shared avx2 "avx2 with the cache of default"
    ask own avx2 "avx2 with a cache of its own"
    ask set avx2 "simdlen 0" 0
    ask set avx2 "simdlen 256 with the cache of simdlen 0" 256
} >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
