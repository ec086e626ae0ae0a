#!/usr/bin/env bash
# torch 2.13.0 on a CPU with AVX2: float32 NaN becomes bfloat16 FFFF by vector code and 7FC0 by plain code; the sign and the payload differ,
# whatever the NaN's own bits are. ATEN_CPU_CAPABILITY chooses the code, so equal programs give unequal bytes on two machines. float16: 7E00.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
DEFAULT: 40 NaN of 7fc00000 to bfloat16 7fc0, to float16 7e00
DEFAULT: 1 NaN of 7fc00000 to bfloat16 7fc0, to float16 7e00
DEFAULT: 1 NaN of ffc00001 to bfloat16 7fc0, to float16 fe00
AVX2: 40 NaN of 7fc00000 to bfloat16 ffff, to float16 7e00
AVX2: 1 NaN of 7fc00000 to bfloat16 ffff, to float16 7e00
AVX2: 1 NaN of ffc00001 to bfloat16 ffff, to float16 fe00
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy
import torch

capability = torch.backends.cpu.get_cpu_capability()
for pattern, count in ((0x7FC00000, 40), (0x7FC00000, 1), (0xFFC00001, 1)):
    x = torch.from_numpy(numpy.full(count, pattern, dtype=numpy.uint32).view(numpy.float32))
    short, half = (int(x.to(dtype).view(torch.int16)[0]) & 0xFFFF for dtype in (torch.bfloat16, torch.float16))
    print(f"{capability}: {count} NaN of {pattern:x} to bfloat16 {short:04x}, to float16 {half:04x}")
ASK

for capability in default avx2; do
    ATEN_CPU_CAPABILITY=$capability "$folder/venv/bin/python" "$folder/ask.py"
done >"$folder/now"
diff "$folder/seen" "$folder/now" && echo "as seen"
