"""Speed of the entropy coder of jpeg-base by compiled kernels, beside libjpeg-turbo (Pillow) on the same files; one thread.

    python benchmarks/scan_speed.py
    python benchmarks/scan_speed.py --runs 5 --no-page

Inputs are batch-normalised features of 3x3 filters on crops of photographs, (8, 8, 256, 256), and the same behind ReLU, each
with two tables. A file has the segment that codec ``jpeg-base`` wrote. Counted are million samples per second of processor
time, the best of several runs. ``libjpeg-turbo`` decodes the whole image, inverse DCT included; ``libjpeg-turbo, 1/8`` makes
one sample of each block, so that little more than its Huffman decoder is left. Writes the table between the marks of
``docs/evidence/speed.md``.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import actcodec
import torch
from actcodec.backends.native import entropy
from actcodec.codecs import JpegBaseCompressed
from actcodec.codecs.jpeg.jpeg_image import jpeg_image
from cdu_tools.marks import Marks
from cdu_tools.report import Table
from PIL import Image, features
from sklearn.datasets import load_sample_images
from torch import Tensor
from torch.nn import functional

_PAGE = Path(__file__).parents[1] / "docs/evidence/speed.md"
_MARKS = Marks("scan-speed")
SHAPE = (8, 8, 256, 256)
TABLES = ("optL", "optH")


def photographed(seed: int) -> Tensor:
    """Features of random filters on crops of two photographs."""
    random = torch.Generator().manual_seed(seed)
    photographs = [torch.from_numpy(image.copy()).float().permute(2, 0, 1) / 255 for image in load_sample_images().images]
    crops = []
    for index in range(SHAPE[0]):
        image = photographs[index % len(photographs)]
        top, left = (int(torch.randint(extent - SHAPE[2], (1,), generator=random)) for extent in image.shape[1:])
        crops.append(image[:, top : top + SHAPE[2], left : left + SHAPE[3]])
    filters = torch.randn(SHAPE[1], 3, 3, 3, generator=random)
    return functional.batch_norm(functional.conv2d(torch.stack(crops), filters, padding=1), None, None, training=True)


def read(file: bytes, *, eighth: bool = False) -> None:
    """Decode an image by libjpeg-turbo."""
    with Image.open(io.BytesIO(file)) as image:
        if eighth:
            image.draft("L", (image.width // 8, image.height // 8))
        image.load()


def rate(action: Callable[[], object], values: int, runs: int) -> str:
    """Million samples per second of processor time."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return f"{values / min(times) / 1e6:.0f}"


def row(name: str, x: Tensor, table: str, runs: int) -> list[str]:
    """One input with one table."""
    packed = actcodec.codec("jpeg-base", dqt=table, backend="native").compress(x)
    assert isinstance(packed, JpegBaseCompressed)
    file, tables = jpeg_image(packed), packed.header.tables
    coefficients = packed.coefficients("native")
    actions = (
        partial(entropy.encode, coefficients, "standard"),
        partial(entropy.decode, packed.payload, len(coefficients), tables),
        partial(read, file, eighth=True),
        partial(read, file),
    )
    bits = 8 * packed.payload.numel() / x.numel()
    return [name, table, f"{bits:.2f}", *(rate(action, x.numel(), runs) for action in actions)]


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="runs per measurement; the best counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-page", action="store_true", help="print the table, and write nothing")
    arguments = parser.parse_args()
    if not features.check_feature("libjpeg_turbo"):
        raise SystemExit("this Pillow was built without libjpeg-turbo: use the wheel of PyPI")
    torch.set_num_threads(1)
    x = photographed(arguments.seed)
    inputs = (("conv", x), ("conv + ReLU", x.relu()))
    rows = [row(name, values, table, arguments.runs) for name, values in inputs for table in TABLES]
    header = ["input", "table", "bits per sample", "encode", "decode", "libjpeg-turbo, 1/8", "libjpeg-turbo"]
    table = Table(header, rows).markdown()
    if arguments.no_page:
        print(table)
    else:
        _MARKS.put(_PAGE, f"\n\n{table}\n\n")


if __name__ == "__main__":
    main()
