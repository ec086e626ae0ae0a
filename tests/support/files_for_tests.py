"""Files that wrong invocations name."""

import json
import os
import pickle

import actcodec
import numpy as np
import pytest
import torch

_STEP = "import torch\nmodel = torch.nn.Linear(2, 1)\n\ndef step():\n    return model(torch.ones(4, 2)).sum()\n"
_VERILOG = "module row(input clk, input d, output reg q); always @(posedge clk) q <= d; endmodule\n"


def make_files(folder):
    """All files that wrong_invocations.toml names, in a folder."""
    _arrays(folder)
    _streams(folder)
    _settings(folder)
    (folder / "mine.py").write_text(_STEP)
    (folder / "file").write_text("no more than a text\n")
    (folder / "nothing").write_bytes(b"")
    (folder / "proven.csv").write_text("block,property,statement,method,holds,s,result,command\n")
    (folder / "x.v").write_text(_VERILOG)
    (folder / "broken.lib").write_text("library (x) {")
    (folder / "text.lib.gz").write_text("library (x) {}")
    for name in ("folder", "folder.toml", "folder.lib", "results/broken", "foreign/one"):
        (folder / name).mkdir(parents=True)
    (folder / "results" / "broken" / "x.json").write_text("{")
    (folder / "foreign" / "one" / "x.json").write_text('{"pdk": "x", "blocks": {"dct": {}}}')
    for name in ("pipe.toml", "pipe.json"):
        os.mkfifo(folder / name)
    for name in ("zero.toml", "zero.json"):
        (folder / name).symlink_to("/dev/zero")
    (folder / "dangling").symlink_to("absent")
    (folder / "soft.npy").symlink_to("x.npy")
    (folder / "soft.cdu").symlink_to("x.cdu")
    (folder / "hard.npy").hardlink_to(folder / "x.npy")


def _arrays(folder):
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 17)).astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "flat.npy", np.ones(64, np.float32))
    np.save(folder / "double.npy", np.ones((1, 1, 8, 8)))
    np.save(folder / "nan.npy", np.full((1, 1, 8, 8), np.nan, np.float32))
    np.save(folder / "empty.npy", np.zeros((0, 3), np.float32))
    np.save(folder / "scalar.npy", np.float32(1))
    (folder / "cut.npy").write_bytes((folder / "x.npy").read_bytes()[:-5])
    (folder / "objects.npy").write_bytes(_objects())
    np.savez(folder / "maps.npz", x=x)
    np.savez(folder / "square.npz", x=np.zeros((4, 4), np.float32))
    np.savez(folder / "double.npz", x=np.zeros((1, 1, 8, 8)))
    (folder / "text.npz").write_text("no archive")


def _objects():
    """An array of objects whose unpickling would run code."""
    head = (
        np.lib.format.magic(1, 0) + b"\x46\x00" + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(69) + b"\n"
    )
    return head + pickle.dumps(_Trap())


class _Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def _streams(folder):
    x = torch.from_numpy(np.load(folder / "x.npy"))
    for name, codec in (("x.cdu", "jpeg-act"), ("sfpr.cdu", "sfpr")):
        (folder / name).write_bytes(actcodec.codec(codec).compress(x).to_bytes())
    (folder / "cut.cdu").write_bytes((folder / "x.cdu").read_bytes()[:-1])


def _settings(folder):
    for name, text in {
        "two": "cdus = 2\n",
        "own": 'cdus = ["1", "2"]\n',
        "broken": "cdus = [",
        "twice": 'modes = ["jpeg-act", "jpeg-act"]\n',
        "number": 'cdus = "4"\n',
        "nested": 'modes = [["jpeg-act"]]\n',
        "name": 'name = "a b"\n',
        "other": "lanes = 8\n",
        "policy": 'policy = "jpeg-act"\n',
        "infinite": 'policy = "division"\noptions = { bits = inf }\n',
    }.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "latin.toml").write_bytes(b'name = "\xe9"\n')
    (folder / "list.json").write_text("[1, 2]\n")
    rows = [{"op": "conv", "shape": [2, 4, 16, 16], "codec": "sfpr", "ratio": 4.0}]
    (folder / "vit.json").write_text(json.dumps({"model": "vit", "runs": [{"codec": "sfpr", "tensors": rows}]}))
