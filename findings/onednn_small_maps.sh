#!/usr/bin/env bash
# torch 2.13.0 (CPU) with its oneDNN, limited to AVX2: the weight's gradient of a convolution takes four times the weight's bytes of
# workspace as soon as the maps, without their padding, are smaller than the kernel (3x3 on 2x2), at batches above one. On larger
# maps it takes one copy. oneDNN's own log names the kernel: jit:avx2 becomes x64:gemm:jit. The last stage of ResNet-18 on images of
# 64x64 is such a case: 36 MiB of workspace for a weight of 9 MiB, and the highest peak of the step.
# Seen: bytes at the peak beyond the result, in multiples of the weight. Exit code 1 when they are others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
kernel 3, maps 2: 4
kernel 3, maps 3: 1
kernel 3, maps 4: 1
kernel 5, maps 4: 4
kernel 5, maps 5: 1
kernel 7, maps 6: 4
kernel 7, maps 7: 1
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
from torch.autograd.profiler import profile

torch.set_num_threads(1)


def workspace(kernel, side):
    x, gradient = torch.rand(2, 16, 128, side, side)
    weight, pad = torch.rand(128, 128, kernel, kernel), [kernel // 2] * 2
    arguments = (gradient, x, weight, None, [1, 1], pad, [1, 1], False, [0, 0], 1, [False, True, False])
    with profile(use_kineto=True, profile_memory=True) as seen:
        result = torch.ops.aten.convolution_backward(*arguments)
    now = peak = 0
    for event in sorted(seen.kineto_results.events(), key=lambda event: event.start_ns()):
        now += event.nbytes() if event.name() == "[memory]" else 0
        peak = max(peak, now)
    return (peak - result[1].nbytes) / weight.nbytes


for kernel, sides in ((3, (2, 3, 4)), (5, (4, 5)), (7, (6, 7))):
    for side in sides:
        print(f"kernel {kernel}, maps {side}: {workspace(kernel, side):.0f}")
ASK

ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=1 "$folder/venv/bin/python" "$folder/ask.py" >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
