#!/usr/bin/env bash
# onnx 1.23.2, operator Cast of opset 24 in the reference evaluator, with its defaults (saturate=1, round_mode="up").
# E8M0: -1 becomes 1, zero becomes 2^-127, and 2^-127 itself, a number of the format, becomes 2^-126, as does all that lies below it.
# E4M3: 500 and infinity become 448.
# Behaviour and output seen: below. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 ml_dtypes==0.6.0 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
E8M0 of 0: 2^-127
E8M0 of -1: 2^0
E8M0 of 0.75: 2^0
E8M0 of 1.25: 2^1
E8M0 of 1.5: 2^1
E8M0 of 3: 2^2
E8M0 of 2^-127: 2^-126
E8M0 of 2^-128: 2^-126
E8M0 of inf: NaN
E4M3 of 464: 448
E4M3 of 480: 448
E4M3 of 500: 448
E4M3 of -500: -448
E4M3 of inf: 448
E4M3 of NaN: NaN
SEEN

cat >"$folder/ask.py" <<'ASK'
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

E8M0 = {"0": 0.0, "-1": -1.0, "0.75": 0.75, "1.25": 1.25, "1.5": 1.5, "3": 3.0, "2^-127": 2.0**-127, "2^-128": 2.0**-128, "inf": float("inf")}
E4M3 = {"464": 464.0, "480": 480.0, "500": 500.0, "-500": -500.0, "inf": float("inf"), "NaN": float("nan")}


def e8m0(byte):
    """The number that a byte of E8M0 stands for."""
    return "NaN" if byte == 255 else f"2^{int(byte) - 127}"


def e4m3(byte):
    """The number that a byte of E4M3 without infinity stands for."""
    sign, exponent, fraction = -1 if byte >> 7 else 1, int(byte) >> 3 & 15, int(byte) & 7
    if exponent == 15 and fraction == 7:
        return "NaN"
    return f"{sign * (fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10)):g}"


def bytes_of(numbers, kind):
    """The bytes of a model that is one Cast."""
    shape = [len(numbers)]
    x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape), helper.make_tensor_value_info("y", kind, shape)
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=kind)], "cast", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    (made,) = ReferenceEvaluator(model).run(None, {"x": np.array(list(numbers.values()), np.float32)})
    return made.view(np.uint8)


for name, byte in zip(E8M0, bytes_of(E8M0, TensorProto.FLOAT8E8M0)):
    print(f"E8M0 of {name}: {e8m0(byte)}")
for name, byte in zip(E4M3, bytes_of(E4M3, TensorProto.FLOAT8E4M3FN)):
    print(f"E4M3 of {name}: {e4m3(byte)}")
ASK

"$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
