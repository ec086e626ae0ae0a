#!/usr/bin/env bash
# ml_dtypes 0.6.0, JAX 0.10.2 and the reference evaluator of onnx 1.23.2: NaN in FP4 (E2M1), and in FP6, becomes minus zero, and infinity
# the greatest number. The formats have neither; a bad value becomes the most harmless one without a sign.
# Seen: what comes back of each number. Exit code 1 when one of them is another.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check ml_dtypes==0.6.0 jax==0.10.2 jaxlib==0.10.2 onnx==1.23.2 numpy==2.4.6

cat >"$folder/seen" <<'SEEN'
ml_dtypes float4_e2m1fn: nan to -0, inf to 6
ml_dtypes float6_e2m3fn: nan to -0, inf to 7.5
ml_dtypes float6_e3m2fn: nan to -0, inf to 28
JAX float4_e2m1fn: nan to -0, inf to 6
onnx FLOAT4E2M1: nan to -0, inf to 6
SEEN

cat >"$folder/ask.py" <<'ASK'
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

numbers = np.array([np.nan, np.inf], np.float32)


def show(name, made):
    """Both results as numbers."""
    nan, infinity = made.astype(np.float32)
    print(f"{name}: nan to {nan:g}, inf to {infinity:g}")


for name in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
    show(f"ml_dtypes {name}", numbers.astype(getattr(ml_dtypes, name)))
show("JAX float4_e2m1fn", np.asarray(jax.jit(lambda x: x.astype(jnp.float4_e2m1fn))(numbers)))
kind = TensorProto.FLOAT4E2M1
x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]), helper.make_tensor_value_info("y", kind, [2])
graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=kind)], "cast", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
show("onnx FLOAT4E2M1", ReferenceEvaluator(model).run(None, {"x": numbers})[0])
ASK

JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/ask.py" 2>"$folder/errors" >"$folder/now" || { cat "$folder/errors"; exit 1; }
diff "$folder/seen" "$folder/now" && echo "as seen"
