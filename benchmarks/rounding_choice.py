"""Rate and distortion of the shift quantiser's two rounding rules, and the cost of a narrower SFPR scale.

    python benchmarks/rounding_choice.py

Prints three markdown tables. Inputs: ``photographs`` (scikit-learn's samples, grey), ``conv`` (batch-normalised features of
random 3x3 filters on them), ``conv + ReLU``. Error is the root mean square error of the reconstruction relative to the root
mean square of the input. The second table compares at equal error: the curve of each rounding rule is drawn by uniform
tables (DC shift 3, all others 2 to 7), and the bytes of ``half_away`` are interpolated on it (both axes logarithmic) at the
error that ``trunc`` reaches.
"""

from __future__ import annotations

import numpy as np
import torch
from actcodec.codecs import TorchBackend, codec, compression_job, decompression_job
from actcodec.golden.blocks import by_channel
from actcodec.golden.sfpr import scales
from cdu_spec import CduConfig, Dtype, MatrixView, Mode, Rounding
from cdu_spec.bitstream import Header
from cdu_spec.sfpr import PUBLISHED_S, SCALE_BITS
from cdu_tools.report import table_row
from golden_speed import conv_features
from sklearn.datasets import load_sample_images
from torch import Tensor

#: Below 2, AC coefficients saturate.
AC_SHIFTS = range(2, 8)


def inputs() -> dict[str, Tensor]:
    """The inputs by name, float32 (N, C, H, W)."""
    grey = np.stack([image.mean(2) for image in load_sample_images().images])[:, None].astype(np.float32) / 255
    features = conv_features(0)
    return {"photographs": torch.from_numpy(grey), "conv": features, "conv + ReLU": features.relu()}


def relative_error(x: Tensor, y: Tensor) -> float:
    """Root mean square error relative to the root mean square of ``x``."""
    return float((x - y).double().square().mean().sqrt() / x.double().square().mean().sqrt())


def uniform_point(x: Tensor, shift: int, rounding: Rounding) -> tuple[float, float]:
    """Bytes per value and error with the DC shift 3 (which keeps DC from saturating) and all other shifts equal."""
    config, unit = CduConfig(), TorchBackend()
    view = MatrixView.of(x.shape, Mode.JPEG_ACT)
    k, r = scales(by_channel(x, view), PUBLISHED_S, config.scale_bits)
    shifts = (3, *(shift,) * 63)
    job = compression_job(view, Dtype.FP32, k, shifts, config.const_bits, config.pass1_bits, rounding)
    payload = unit.compress_tensor(x, view, job)
    header = Header(Mode.JPEG_ACT, Dtype.FP32, tuple(x.shape), payload.numel(), config.const_bits, config.pass1_bits)
    y = unit.decompress_tensor(payload, view, decompression_job(header, shifts, r), x.shape)
    return header.stream_bytes / x.numel(), relative_error(x, y)


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    tensors = inputs()
    print("| input | table | trunc bytes/value | trunc error | half_away bytes/value | half_away error |")
    print("|---|---|---|---|---|---|")
    for name, x in tensors.items():
        for table in ("optL", "optH", "image80"):
            cells = []
            for rounding in (Rounding.TRUNC, Rounding.HALF_AWAY):
                packed = codec("jpeg-act", dqt=table, rounding=rounding.value).compress(x)
                cells += [f"{packed.nbytes / x.numel():.4f}", f"{relative_error(x, packed.decompress()):.5f}"]
            print(table_row([name, table, *cells]))

    print("\n| input | error | trunc bytes/value | half_away bytes/value | half_away / trunc |")
    print("|---|---|---|---|---|")
    for name, x in tensors.items():
        curve = [uniform_point(x, shift, Rounding.HALF_AWAY) for shift in AC_SHIFTS]
        sizes, errors = (np.log(column) for column in zip(*curve, strict=True))
        for shift in AC_SHIFTS:
            size, error = uniform_point(x, shift, Rounding.TRUNC)
            if not errors[0] <= np.log(error) <= errors[-1]:
                continue
            other = float(np.exp(np.interp(np.log(error), errors, sizes)))
            print(f"| {name} | {error:.5f} | {size:.4f} | {other:.4f} | {other / size:.3f} |")

    print("\n" + table_row(["input", "codec", *(f"error, scale {bits} bits" for bits in SCALE_BITS)]))
    print("|---|---|" + "---|" * len(SCALE_BITS))
    for name, x in tensors.items():
        for kind in ("sfpr", "jpeg-act"):
            found = [codec(kind, S=PUBLISHED_S, scale_bits=bits) for bits in SCALE_BITS]
            errors_text = [f"{relative_error(x, one.decompress(one.compress(x))):.6f}" for one in found]
            print(table_row([name, kind, *errors_text]))


if __name__ == "__main__":
    main()
