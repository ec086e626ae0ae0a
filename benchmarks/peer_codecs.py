"""Codecs of others on the activations of seven networks, beside ours: ratio and error, and speed on one core.

    pip install 'actcodec[peers]'
    python benchmarks/peer_codecs.py --data cifar10.npz
    python benchmarks/peer_codecs.py              # no measurement: picture and tables from the recorded points

Each network is trained without compression for some steps; what it saves of the next one is coded: results of convolutions
and sums and the input; of VDSR, which has no normalisation, results of ReLU; of the vision transformer its tokens, as images
of tokens times features. Writes peers_codecs.csv (all points), peers_codecs_ratios.csv (at equal errors),
peers_codecs_speed.csv and peers_codecs.png beside docs/evidence/peers.md, and a short table between the marks of that
page. The ratio is that of all tensors of a network together, with all that a decoder needs; error is ||x - x'|| / ||x||, mean
over the tensors. Error bounds are parts of a tensor's root mean square. zfp, SZ3 3.3.2, blosc2 and libjpeg-turbo are those of
imagecodecs, SZ3 3.4.0 is that of pysz. blosc2 is lossless (bytes of equal weight together, then zstd); it gets values rounded
to some bits of fraction, where its own filter for floating point cuts, or the numbers of equal steps.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import actcodec
import numpy as np
import torch
from actcodec.codecs.acgc.cusz_codec import CuszCodec
from actcodec.golden import blocks
from actcodec.golden.sfpr import inverse_sfpr, reciprocals
from actcodec.policies.policy import SavedTensor
from actcodec.study.activations import DenseActivations
from actcodec.study.data import load
from cdu_dqt.coefficients import quantized_matrix
from cdu_dqt.comparison import interpolated
from cdu_spec.bitstream import RECIPROCAL_BYTES
from cdu_spec.matrix_view import MatrixView
from cdu_spec.modes import Mode
from cdu_spec.sfpr import PUBLISHED_S, SFPR_RECIPROCAL_BITS
from cdu_tools.files import write_whole
from cdu_tools.marks import Marks
from digest import Table, read
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from recorded import CNNS, IMAGES, KEPT, Training, record, trainings
from torch import Tensor, nn

#: Its types, where it has any, are not those that it takes.
imagecodecs: Any = import_module("imagecodecs")
pysz: Any = import_module("pysz")
_EVIDENCE = Path(__file__).parent.parent / "docs" / "evidence"
#: Marks of the part of peers.md with the tables of this script.
MARKS = Marks("peer-codecs")
#: Networks on the page; the others are in the file.
_SHOWN = ("resnet", "vgg", "vdsr", "vit", "mobilenet_v2")
#: Networks of the project by name, width and depth, and those of torchvision by name and side of their images.
OWN = (*CNNS, ("vit", 32, 2))
LIBRARY = (("resnet18", 64), ("mobilenet_v2", 64))
#: Errors at which ratios are compared, and the one at which speeds are.
_ERRORS, _SPEED_ERROR = (0.05, 0.1, 0.2), 0.1
_SPEED_NETWORK, _ROUNDS = "resnet", 15
_JPEG_ROWS = 65_496  # rows of an image: at most 65,500, here whole blocks
_FRACTION_BITS = 23  # fraction bits of float32
_BLOSC2_LEVEL = 5


_SPEED_HEAD = ("codec", "setting", "error", "ratio", "compress, MB/s", "of jpeg-gmc", "decompress, MB/s", "of jpeg-gmc")
#: Error and ratio of a codec with some setting.
Point = tuple[float, float]


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
    unit: str  #: unit of a setting
    colour: str
    style: str = "-"


def _ours(name: str, x: Tensor, step: float) -> Coded:
    packed = actcodec.codec(name, dqt=f"uniform-{step:g}", S=PUBLISHED_S, backend="native").compress(x)
    return Coded(packed.nbytes, partial(packed.decompress, "native"))


def _cusz(x: Tensor, part: float) -> Coded:
    packed = CuszCodec().compress_within(x, part * _size(x).view(1))
    return Coded(packed.nbytes, packed.decompress)


def _zfp(x: Tensor, part: float) -> Coded:
    data = imagecodecs.zfp_encode(_planes(x), level=part * float(_size(x)), mode="accuracy")
    return Coded(len(data), lambda: torch.from_numpy(imagecodecs.zfp_decode(data)).view(x.shape))


def _sz3(x: Tensor, part: float) -> Coded:
    planes = _planes(x)
    data = imagecodecs.sz3_encode(planes, mode="abs", abs=part * float(_size(x)))
    shape, dtype = planes.shape, planes.dtype
    return Coded(len(data), lambda: torch.from_numpy(imagecodecs.sz3_decode(data, shape, dtype)).view(x.shape))


def _new_sz3(x: Tensor, part: float) -> Coded:
    planes, config = _planes(x), pysz.szConfig()
    config.errorBoundMode, config.absErrorBound = pysz.szErrorBoundMode.ABS, part * float(_size(x))
    data, _ = pysz.sz.compress(planes, config)
    shape, dtype = planes.shape, planes.dtype
    return Coded(data.nbytes, lambda: torch.from_numpy(pysz.sz.decompress(data, dtype, shape)[0]).view(x.shape))


def _blosc2_fraction(x: Tensor, bits: float) -> Coded:
    """Values rounded to so many bits of fraction, halves away from zero."""
    dropped = _FRACTION_BITS - int(bits)
    data = _blosc2((x.numpy().view(np.int32) + (1 << dropped - 1)) >> dropped << dropped)
    return Coded(len(data), lambda: _unblosc2(data, torch.float32).view(x.shape))


def _blosc2_steps(x: Tensor, part: float) -> Coded:
    """The numbers of equal steps; their error is uniform, its root mean square a step by the root of 12."""
    step = part * float(_size(x)) * 12**0.5
    numbers = (x / step).round_()
    kind = torch.int16 if numbers.abs().max() <= torch.iinfo(torch.int16).max else torch.int32
    data = _blosc2(numbers.to(kind).numpy())
    return Coded(len(data), lambda: _unblosc2(data, kind).view(x.shape) * step)


def _blosc2(values: np.ndarray[Any, Any]) -> bytes:
    options = {"compressor": "zstd", "shuffle": "shuffle", "typesize": values.itemsize, "numthreads": 1}
    data: bytes = imagecodecs.blosc2_encode(values, _BLOSC2_LEVEL, **options)
    return data


def _unblosc2(data: bytes, kind: torch.dtype) -> Tensor:
    return torch.frombuffer(bytearray(imagecodecs.blosc2_decode(data, numthreads=1)), dtype=kind)


def _turbo(x: Tensor, quality: float) -> Coded:
    """SFPR's integers plus 128 as grey images as wide as a channel, with Huffman codes of their own."""
    view = MatrixView.of(x.shape, Mode.JPEG_ACT)
    integers, k = quantized_matrix(x, PUBLISHED_S)
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
_SZ3_BOUNDS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28)
PEERS = {
    "jpeg-gmc": Peer(partial(_ours, "jpeg-gmc"), _STEPS_OF_TABLES, "step", "#D55E00"),
    "jpeg-act": Peer(partial(_ours, "jpeg-act"), _STEPS_OF_TABLES, "step", "#0072B2"),
    "jpeg-base": Peer(partial(_ours, "jpeg-base"), (4, 6, 8, 12, 16, 24, 32, 64, 128), "step", "#009E73"),
    "cusz": Peer(_cusz, (0.02, 0.04, 0.08, 0.16, 0.32, 0.5), "RMS error", "#E69F00"),
    "libjpeg-turbo": Peer(_turbo, (96, 92, 88, 80, 60, 40, 20, 10, 5), "quality", "#000000", "--"),
    "SZ3 3.3.2": Peer(_sz3, _SZ3_BOUNDS, "greatest error", "#CC79A7", ":"),
    "SZ3 3.4.0": Peer(_new_sz3, _SZ3_BOUNDS, "greatest error", "#CC79A7", "--"),
    "zfp": Peer(_zfp, tuple(0.04 * 2**place for place in range(9)), "greatest error", "#56B4E9", "--"),
    "blosc2, fraction": Peer(_blosc2_fraction, (5, 4, 3, 2, 1, 0), "bits of fraction", "#999999", "--"),
    "blosc2, steps": Peer(_blosc2_steps, (0.02, 0.04, 0.08, 0.16, 0.32, 0.5), "RMS error", "#8A5A00", "--"),
}


def main() -> None:
    """Measure if there is data, then draw and write the tables of the recorded points."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="CIFAR-10 as .npz; nothing is measured unless given")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.data:
        _measure(arguments.data)
    curves: dict[tuple[str, str], list[Point]] = {}
    for network, name, _, _, error, ratio in _read("peers_codecs.csv"):
        curves.setdefault((network, name), []).append((float(error), float(ratio)))
    speeds = _read("peers_codecs_speed.csv")
    write_whole(_EVIDENCE / "peers_codecs.png", _plot(curves, speeds))
    write_tables(curves)


def _measure(data: Path) -> None:
    rows = []
    for network, training in trainings(load("cifar10", data, IMAGES), OWN, LIBRARY):
        tensors = recorded(training)
        values = sum(x.numel() for x in tensors)
        print(f"{network}: {len(tensors)} tensors, {values} values", file=sys.stderr, flush=True)
        points = {name: [measured(tensors, peer, setting) for setting in peer.settings] for name, peer in PEERS.items()}
        for name, peer in PEERS.items():
            rows += [
                (network, name, peer.unit, f"{setting:.4g}", f"{error:.5f}", f"{ratio:.3f}")
                for setting, (error, ratio) in zip(peer.settings, points[name], strict=True)
            ]
        if network == _SPEED_NETWORK:
            speeds = Table(_SPEED_HEAD, tuple(_speeds(tensors, points)))
    head = ("network", "codec", "unit of the setting", "setting", "error", "ratio")
    write_whole(_EVIDENCE / "peers_codecs.csv", Table(head, tuple(rows)).csv())
    write_whole(_EVIDENCE / "peers_codecs_speed.csv", speeds.csv())


def _read(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a file beside the page."""
    return read((_EVIDENCE / name).read_text("utf-8")).rows


def measured(tensors: Sequence[Tensor], peer: Peer, setting: float) -> Point:
    """Error and ratio."""
    coded = [peer.code(x, setting) for x in tensors]
    errors = [float((one.decode() - x).norm() / x.norm()) for one, x in zip(coded, tensors, strict=True)]
    return sum(errors) / len(errors), sum(4 * x.numel() for x in tensors) / sum(one.nbytes for one in coded)


def recorded(training: Training) -> list[Tensor]:
    """Return the tensors of a network that are coded, float32 (N, C, H, W)."""
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
    return [x[:KEPT].float().contiguous() for x in found]


def _speeds(tensors: Sequence[Tensor], curves: dict[str, list[Point]]) -> Iterator[tuple[str, ...]]:
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
        yield tuple(cells)


def write_tables(curves: dict[tuple[str, str], list[Point]]) -> None:
    """Write the ratios at equal errors beside the page, and those at one error into the page."""
    found = ratios(curves)
    write_whole(_EVIDENCE / "peers_codecs_ratios.csv", found.csv())
    shown = found.where(error=f"{_SPEED_ERROR:g}").only("codec", *_SHOWN)
    MARKS.put(_EVIDENCE / "peers.md", f"\n\n{shown.markdown()}\n\n")


def ratios(curves: dict[tuple[str, str], list[Point]]) -> Table:
    """Return the ratio of each codec on each network at equal errors, interpolated; "-" beyond the points."""
    networks = list(dict.fromkeys(network for network, _ in curves))
    rows = []
    for error in _ERRORS:
        for name in PEERS:
            found = (interpolated(error, *zip(*curves[network, name], strict=True)) for network in networks)
            rows.append((f"{error:g}", name, *("-" if ratio is None else f"{ratio:.2f}" for ratio in found)))
    return Table(("error", "codec", *networks), tuple(rows))


def _plot(curves: dict[tuple[str, str], list[Point]], speeds: Sequence[Sequence[str]]) -> bytes:
    """Ratio against error, a panel per network, and at the end ratio against speed."""
    networks = list(dict.fromkeys(network for network, _ in curves))
    figure = Figure(figsize=(14, 7.6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, -(-(len(networks) + 1) // 2)).flatten()
    for axes, network in zip(grid, networks, strict=False):
        for name, peer in PEERS.items():
            errors, ratios = zip(*curves[network, name], strict=True)
            axes.plot(errors, ratios, peer.style, marker=".", color=peer.colour, linewidth=1.4, label=name)
        largest = max(ratio for name in PEERS for _, ratio in curves[network, name])
        axes.set(title=network, xscale="log", yscale="log", xlim=(0.015, 0.5), ylim=(2, 1.2 * max(largest, 100)))
        _label(axes.xaxis, (0.02, 0.05, 0.1, 0.2, 0.5))
        _label(axes.yaxis, (2, 5, 10, 20, 50, 100, 200, 500), "x")
        axes.set_xlabel("error ||x - x'|| / ||x||")
    _plot_speeds(grid[len(networks)], speeds)
    for axes in grid[: len(networks) + 1]:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[len(networks) + 1 :]:
        axes.axis("off")
    figure.supylabel("ratio to float32")
    figure.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(PEERS), frameon=False)
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def _plot_speeds(axes: Axes, rows: Sequence[Sequence[str]]) -> None:
    """A line for each codec, from its speed of compressing to that of decompressing, the densest first."""
    places = sorted(rows, key=lambda row: float(row[3]))
    for place, (name, _, _, _, compress, _, decompress, _) in enumerate(places):
        ways, peer = (float(compress), float(decompress)), PEERS[name]
        axes.plot(ways, (place, place), peer.style, color=peer.colour, linewidth=1.4)
        axes.plot(ways[0], place, "o", color=peer.colour)
        axes.plot(ways[1], place, "D", color=peer.colour, markerfacecolor="white")
    axes.set_yticks(range(len(places)), labels=[f"{row[0]} {float(row[3]):.1f}x" for row in places])
    axes.set(title=f"{_SPEED_NETWORK}, error near {_SPEED_ERROR:g}", xscale="log", xlim=(15, 3000))
    _label(axes.xaxis, (20, 50, 100, 200, 500, 1000, 2000))
    axes.set_xlabel("MB/s: full compress, hollow decompress")


def _label(axis: Axis, ticks: Sequence[float], unit: str = "") -> None:
    """Numbers as they are read, on an axis that is logarithmic, those within its limits."""
    low, high = axis.get_view_interval()
    shown = [tick for tick in ticks if low <= tick <= high]
    axis.set_ticks(shown, labels=[f"{tick:g}{unit}" for tick in shown])
    axis.set_minor_locator(NullLocator())


if __name__ == "__main__":
    main()
