#!/usr/bin/env bash
# torch 2.13.0 (CPU), inductor: the backward of a depthwise convolution whose maps lie channels last is given them in the order
# N, H, C, W, in which no value of the graph lies; oneDNN then copies them, for twice the time. Inductor asks for the maps in the
# order of the strides of the weight's gradient, (9, 1, 3, 1) for one channel per group: two are equal, and the sort puts the
# channels behind the columns. With two channels per group they come channels last. layout_optimization, True by default, which
# asks for channels last, changes nothing: a graph of a backward alone has no convolution that it counts.
# Seen: strides of the map of (4, 8, 16, 16) that aten.convolution_backward takes. Exit code 1 when they are others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
layout_optimization False, 8 groups: (2048, 16, 128, 1)
layout_optimization False, 4 groups: (2048, 1, 128, 8)
layout_optimization True, 8 groups: (2048, 16, 128, 1)
SEEN

cat >"$folder/ask.py" <<'ASK'
import torch
from torch import nn
from torch._inductor import config
from torch.utils._python_dispatch import TorchDispatchMode


class Strides(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, given=(), named=None):
        if operation is torch.ops.aten.convolution_backward.default and given[2].shape[2] == 3:
            print(f"layout_optimization {config.layout_optimization}, {given[9]} groups: {given[1].stride()}")
        return operation(*given, **(named or {}))


for optimized, groups in ((False, 8), (False, 4), (True, 8)):
    torch._dynamo.reset()
    convolution = nn.Conv2d(8, 8, 3, padding=1, groups=groups)
    model = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8), nn.ReLU6(), convolution)
    x = torch.rand(4, 3, 16, 16).contiguous(memory_format=torch.channels_last)
    with config.patch(layout_optimization=optimized):
        loss = torch.compile(model.to(memory_format=torch.channels_last))(x).square().mean()
        with Strides():
            loss.backward()
ASK

TORCHINDUCTOR_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" "$folder/ask.py" >"$folder/now" 2>"$folder/errors" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
