#!/usr/bin/env bash
# torch 2.13.0: numpy() makes the storage of a tensor fixed for good, also when the array is gone; numpy.from_dlpack does not.
# FSDP2 frees unsharded weights by resizing their storage: a hook that looks at a weight through numpy() makes backward raise
# "Trying to resize storage that is not resizable", far from the hook.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
new: True
after numpy(), array deleted: False
after numpy() of a slice: False
after numpy.from_dlpack: True
backward, weights looked at by numpy(): Trying to resize storage that is not resizable
backward, weights looked at by numpy.from_dlpack: done
SEEN

cat >"$folder/ask.py" <<'ASK'
import os
import tempfile

import numpy
import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard


def resizable(look):
    x = torch.ones(8)
    look(x)
    return x.untyped_storage().resizable()


def hook_of(look):
    def hook(module, given, result):
        look(module.weight.detach())

    return hook


print("new:", resizable(lambda x: None))
print("after numpy(), array deleted:", resizable(lambda x: x.numpy()))
print("after numpy() of a slice:", resizable(lambda x: x[2:4].numpy()))
print("after numpy.from_dlpack:", resizable(numpy.from_dlpack))

with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method=f"file://{os.path.join(folder, 'meeting')}", rank=0, world_size=1)
    mesh = distributed.device_mesh.init_device_mesh("cpu", (1,))
    for name, look in (("numpy()", lambda x: x.numpy()), ("numpy.from_dlpack", numpy.from_dlpack)):
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        for layer in (model[0], model[2]):
            layer.register_forward_hook(hook_of(look))
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        try:
            model(torch.ones(2, 4)).sum().backward()
            said = "done"
        except RuntimeError as error:
            said = str(error)
        print(f"backward, weights looked at by {name}:", said)
    distributed.destroy_process_group()
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/warnings" >"$folder/now"
diff "$folder/seen" "$folder/now" && echo "as seen"
