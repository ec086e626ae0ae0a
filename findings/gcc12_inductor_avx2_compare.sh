#!/usr/bin/env bash
# torch 2.13.0 with g++ 12.2 on an x86 CPU with AVX-512: where inductor writes AVX2, torch.where takes the wrong side of some
# comparisons of integers. Inductor passes -march=native; its AVX2 headers invert a mask and blend with it, and GCC 12 then drops
# the inversion. Masks of int8, int32 and int64 are inverted for "<=" and ">=", those of uint8 for "<" and ">"; int16 and float32
# are right.
# Seen: for each type the comparisons with which torch.where differs from eager. Exit code 1 when it is another, 2 where it does
# not apply.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
grep -q avx512vl /proc/cpuinfo && [ "$(g++ -dumpversion)" = 12 ] || { echo "needs g++ 12 and a CPU with AVX-512"; exit 2; }
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
int8: <= >=
int16:
int32: <= >=
int64: <= >=
uint8: < >
float32:
SEEN

cat >"$folder/ask.py" <<'ASK'
import operator

import torch

for kind in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float32):
    x = torch.arange(128).to(kind)
    wrong = []
    for name, compare in {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}.items():
        def chosen(x, compare=compare):
            return torch.where(compare(x, 50), x, 7)

        torch._dynamo.reset()
        if not torch.equal(torch.compile(chosen)(x), chosen(x)):
            wrong.append(name)
    print(" ".join([f"{str(kind).removeprefix('torch.')}:", *wrong]))
ASK

TORCHINDUCTOR_CACHE_DIR="$folder/cache" ATEN_CPU_CAPABILITY=avx2 "$folder/venv/bin/python" "$folder/ask.py" \
    >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
