"""Codecs of others on the activations of seven networks, beside ours: ratio and error, and speed on one core.

    pip install 'cdu[peers]'
    python benchmarks/peer_codecs.py --data cifar10.npz

Each network is trained without compression for some steps; what it saves of the next one is coded: results of convolutions and
sums and the input; of VDSR, which has no normalisation, results of ReLU; of the vision transformer its tokens, as images of
tokens times features. Writes peers_codecs.csv, peers_codecs.png and peers_codecs_speed.csv beside docs/evidence/peers.md, and
prints the markdown tables of that page. The ratio is that of all tensors of a network together, with all that a decoder needs;
error is ||x - x'|| / ||x||, mean over the tensors. Error bounds are parts of a tensor's root mean square. zfp, SZ3 and
libjpeg-turbo are those of imagecodecs.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import actcodec
import imagecodecs
import numpy as np
import torch
from actcodec.codecs.acgc.cusz_codec import CuszCodec
from actcodec.golden import blocks
from actcodec.golden.sfpr import inverse_sfpr, reciprocals
from actcodec.policies.policy import SavedTensor
from actcodec.study.activations import DenseActivations
from actcodec.study.data import load
from actcodec.study.dqt.coefficients import quantized_matrix
from actcodec.study.dqt.comparison import interpolated
from cdu_spec.bitstream import RECIPROCAL_BYTES, MatrixView, Mode
from cdu_spec.sfpr import DEFAULT_S, SFPR_RECIPROCAL_BITS
from cdu_tools.files import write_whole
from cdu_tools.report import table_row
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from recorded import Training, record, trainings
from torch import Tensor, nn

_EVIDENCE = Path(__file__).parent.parent / "docs" / "evidence"
_IMAGES, _KEPT = 4000, 8
#: Networks of the project by name, width and depth, and those of torchvision by name and side of their images.
_OWN = (("resnet", 16, 1), ("vgg", 16, 2), ("wide-resnet", 16, 1), ("vdsr", 64, 5), ("vit", 32, 2))
_LIBRARY = (("resnet18", 64), ("mobilenet_v2", 64))
#: Errors at which ratios are compared, and the one at which speeds are.
_ERRORS, _SPEED_ERROR = (0.05, 0.1, 0.2), 0.1
_SPEED_NETWORK, _ROUNDS = "resnet", 15
_JPEG_ROWS = 65_496  # of an image: at most 65,500, here whole blocks


@dataclass(frozen=True)
class Coded:
    """A tensor in the form of a codec: what a decoder needs, in bytes, and the way back."""

    nbytes: int
    decode: Callable[[], Tensor]


@dataclass(frozen=True)
class Peer:
    """A codec with one free setting."""

    code: Callable[[Tensor, float], Coded]
    settings: Sequence[float]  #: from fine to coarse
    unit: str  #: what a setting is
    colour: str
    style: str = "-"


def _ours(name: str, x: Tensor, step: float) -> Coded:
    packed = actcodec.codec(name, dqt=f"uniform-{step:g}", backend="native").compress(x)
    return Coded(packed.nbytes, partial(packed.decompress, "native"))


def _cusz(x: Tensor, part: float) -> Coded:
    packed = CuszCodec().compress_within(x, part * _size(x).view(1))
    return Coded(packed.nbytes, packed.decompress)


def _zfp(x: Tensor, part: float) -> Coded:
    tolerance: Any = part * float(_size(x))  # declared as an integer
    data = imagecodecs.zfp_encode(_planes(x), level=tolerance, mode="accuracy")
    return Coded(len(data), lambda: torch.from_numpy(imagecodecs.zfp_decode(data)).view(x.shape))


def _sz3(x: Tensor, part: float) -> Coded:
    planes = _planes(x)
    data = imagecodecs.sz3_encode(planes, mode="abs", abs=part * float(_size(x)))
    shape, dtype = planes.shape, planes.dtype
    return Coded(len(data), lambda: torch.from_numpy(imagecodecs.sz3_decode(data, shape, dtype)).view(x.shape))


def _turbo(x: Tensor, quality: float) -> Coded:
    """SFPR's integers plus 128 as grey images as wide as a channel, with Huffman codes of their own."""
    view = MatrixView.of(x.shape, Mode.JPEG_ACT)
    integers, k = quantized_matrix(x, DEFAULT_S)
    grey = (integers.to(torch.int16) + 128).to(torch.uint8).numpy()
    images = [
        imagecodecs.jpeg8_encode(grey[row : row + _JPEG_ROWS], level=int(quality), optimize=True)
        for row in range(0, len(grey), _JPEG_ROWS)
    ]

    def decode() -> Tensor:
        found = np.concatenate([imagecodecs.jpeg8_decode(image) for image in images])
        values = (torch.from_numpy(found).to(torch.int16) - 128).to(torch.int8)
        channels = blocks.by_channel(blocks.unpadded(values, view, x.numel()), view)
        return inverse_sfpr(channels, reciprocals(k, SFPR_RECIPROCAL_BITS)[:, None]).view(x.shape)

    return Coded(sum(map(len, images)) + RECIPROCAL_BYTES * len(k), decode)


def _planes(x: Tensor) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """All channels one above the other: with three or four dimensions zfp and SZ3 write more."""
    planes: np.ndarray[tuple[int, int], np.dtype[np.float32]] = x.numpy().reshape(-1, x.shape[3])
    return planes


def _size(x: Tensor) -> Tensor:
    """Root mean square."""
    return x.square().mean().sqrt().clamp_min(1e-30)


_STEPS_OF_TABLES = (4, 8, 16, 32, 64, 128)
PEERS = {
    "jpeg-gmc": Peer(partial(_ours, "jpeg-gmc"), _STEPS_OF_TABLES, "step", "#D55E00"),
    "jpeg-act": Peer(partial(_ours, "jpeg-act"), _STEPS_OF_TABLES, "step", "#0072B2"),
    "jpeg-base": Peer(partial(_ours, "jpeg-base"), (4, 6, 8, 12, 16, 24, 32, 64, 128), "step", "#009E73"),
    "cusz": Peer(_cusz, (0.02, 0.04, 0.08, 0.16, 0.32, 0.5), "RMS error", "#E69F00"),
    "libjpeg-turbo": Peer(_turbo, (96, 92, 88, 80, 60, 40, 20, 10, 5), "quality", "#000000", "--"),
    "SZ3": Peer(_sz3, (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28), "greatest error", "#CC79A7", "--"),
    "zfp": Peer(_zfp, tuple(0.04 * 2**place for place in range(9)), "greatest error", "#56B4E9", "--"),
}


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="CIFAR-10 as .npz")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows, curves = [], {}
    for network, training in trainings(load("cifar10", arguments.data, _IMAGES), _OWN, _LIBRARY):
        tensors = _recorded(training)
        values = sum(x.numel() for x in tensors)
        print(f"{network}: {len(tensors)} tensors, {values} values", file=sys.stderr, flush=True)
        for name, peer in PEERS.items():
            points = [measured(tensors, peer, setting) for setting in peer.settings]
            curves[network, name] = points
            rows += [
                [network, name, peer.unit, f"{setting:.4g}", f"{error:.5f}", f"{ratio:.3f}"]
                for setting, (error, ratio) in zip(peer.settings, points, strict=True)
            ]
        if network == _SPEED_NETWORK:
            speeds = list(_speeds(tensors, {name: curves[network, name] for name in PEERS}))
    _write("peers_codecs.csv", ["network", "codec", "unit of the setting", "setting", "error", "ratio"], rows)
    write_whole(_EVIDENCE / "peers_codecs.png", _plot(curves))
    _print_ratios(curves)
    _print_speeds(speeds)


def measured(tensors: Sequence[Tensor], peer: Peer, setting: float) -> tuple[float, float]:
    """Error and ratio."""
    coded = [peer.code(x, setting) for x in tensors]
    errors = [float((one.decode() - x).norm() / x.norm()) for one, x in zip(coded, tensors, strict=True)]
    return sum(errors) / len(errors), sum(4 * x.numel() for x in tensors) / sum(one.nbytes for one in coded)


def _recorded(training: Training) -> list[Tensor]:
    """What is coded of a network, float32 (N, C, H, W)."""
    maps, others = DenseActivations(), []
    normalised = any(isinstance(one, nn.BatchNorm2d) for one in training[0].modules())

    def keep(tensor: SavedTensor, x: Tensor) -> None:
        maps(tensor, x)
        if x.dim() == 3 and tensor.producer not in ("softmax", "dropout"):
            others.append(x[:, None].clone())
        elif x.dim() == 4 and tensor.producer == "relu" and not normalised:
            others.append(x.clone())

    record(training, keep)
    found = [one.values for one in maps.found] + others
    return [x[:_KEPT].float().contiguous() for x in found]


def _speeds(tensors: Sequence[Tensor], curves: dict[str, list[tuple[float, float]]]) -> Iterator[list[str]]:
    """A row per codec, each with the setting whose error is nearest: all in turn, round by round, in processor time."""
    chosen = {
        name: min(range(len(points)), key=lambda place: abs(np.log(points[place][0] / _SPEED_ERROR)))
        for name, points in curves.items()
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in chosen}
    for one_round in range(_ROUNDS + 1):
        for name, place in chosen.items():
            peer = PEERS[name]
            begin = time.process_time()
            coded = [peer.code(x, peer.settings[place]) for x in tensors]
            middle = time.process_time()
            for one in coded:
                one.decode()
            if one_round:  # the first one warms up
                times[name].append((middle - begin, time.process_time() - middle))
    megabytes = sum(4 * x.numel() for x in tensors) / 1e6
    for name, place in chosen.items():
        error, ratio = curves[name][place]
        cells = [name, f"{PEERS[name].settings[place]:.3g} ({PEERS[name].unit})", f"{error:.3f}", f"{ratio:.2f}"]
        for way in (0, 1):
            cells.append(f"{megabytes / median(one[way] for one in times[name]):.0f}")
            ours = zip(times[name], times["jpeg-gmc"], strict=True)
            cells.append(f"{median(reference[way] / own[way] for own, reference in ours):.2f}")
        yield cells


def _print_ratios(curves: dict[tuple[str, str], list[tuple[float, float]]]) -> None:
    networks = list(dict.fromkeys(network for network, _ in curves))
    for error in _ERRORS:
        print(f"\nRatio at error {error:g}:\n")
        print(table_row(["codec", *networks]))
        print("|---|" + "--:|" * len(networks))
        for name in PEERS:
            found = (interpolated(error, *zip(*curves[network, name], strict=True)) for network in networks)
            print(table_row([name, *("-" if ratio is None else f"{ratio:.2f}" for ratio in found)]))


def _print_speeds(rows: Sequence[Sequence[str]]) -> None:
    head = ["codec", "setting", "error", "ratio", "compress, MB/s", "of jpeg-gmc", "decompress, MB/s", "of jpeg-gmc"]
    _write("peers_codecs_speed.csv", head, rows)
    print()
    print(table_row(head))
    print("|---|---|" + "--:|" * (len(head) - 2))
    for row in rows:
        print(table_row(list(row)))


def _write(name: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    write_whole(_EVIDENCE / name, text.getvalue().encode())


def _plot(curves: dict[tuple[str, str], list[tuple[float, float]]]) -> bytes:
    networks = list(dict.fromkeys(network for network, _ in curves))
    figure = Figure(figsize=(13, 7), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, 4).flatten()
    for axes, network in zip(grid, networks, strict=False):
        for name, peer in PEERS.items():
            errors, ratios = zip(*curves[network, name], strict=True)
            axes.plot(errors, ratios, peer.style, marker=".", color=peer.colour, linewidth=1.4, label=name)
        largest = max(ratio for name in PEERS for _, ratio in curves[network, name])
        axes.set(title=network, xscale="log", yscale="log", xlim=(0.015, 0.5), ylim=(4, 1.2 * max(largest, 100)))
        axes.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5], labels=["0.02", "0.05", "0.1", "0.2", "0.5"])
        ticks = [tick for tick in (5, 10, 20, 50, 100, 200, 500, 1000) if tick < axes.get_ylim()[1]]
        axes.set_yticks(ticks, labels=[str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(networks) :]:
        axes.axis("off")
    grid[-1].legend(*grid[0].get_legend_handles_labels(), loc="center", frameon=False)
    figure.supxlabel("relative error ||x - x'|| / ||x||, mean over the tensors")
    figure.supylabel("ratio to float32")
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


if __name__ == "__main__":
    main()
