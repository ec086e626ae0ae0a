"""Error-bounded codecs on real activations: ratio at equal error, errors against what was asked for, bytes and speed of cusz.

    python benchmarks/error_bounded.py
    python benchmarks/error_bounded.py --dataset cifar10 --limit 4000 --width 16 --steps 120

A ResNet is trained without compression; what it saves in the last step (the first images of the batch) is the data: maps of 8x8
values and more. Markdown tables:

1. Ratio to float32 at equal RMS errors, which are given in units of each tensor's standard deviation. Codecs that can be told
   an error are told it; of the others the setting is taken that makes the most of it (sfpr+zvc: S; jpeg-act: the table).
2. What acgc-jpeg predicts, and what it then measures.
3. What steps cusz finds, and what errors they make.
4. cusz's integers: bytes against the entropy of single differences, for every number of dimensions, and with plain deflate.
5. Speed of codecs, best of several runs, one thread.
"""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import actcodec
import torch
from actcodec.backends.torch_backend import TorchBackend
from actcodec.codecs import Packed
from actcodec.codecs.acgc.acgc_jpeg_codec import AcgcJpegCodec, rms_error
from actcodec.codecs.acgc.cusz_codec import CuszCodec
from actcodec.codecs.acgc.error_bounded import ErrorBoundedCodec
from actcodec.codecs.acgc.error_steps import UNIFORM_BOUND, steps_of_rms
from actcodec.golden.floating.predicted import whole_multiples
from actcodec.golden.integer_coder import encode
from actcodec.golden.lorenzo import MAX_DIMENSIONS, differences
from actcodec.study import experiment
from actcodec.study.data import load
from actcodec.study.recording import RecordingPolicy
from cdu_tools.report import table_row
from torch import Tensor

#: RMS errors in units of the standard deviation of a tensor.
ERRORS = (0.02, 0.05, 0.1, 0.2, 0.3)
#: Settings among which those of codecs without an error are found.
SCALES = tuple(127 / 128 / 2 ** (step / 4) for step in range(24))
TABLES = ("optsL", "optsH", *(f"image{quality}" for quality in (2, 5, 10, 15, 20, 30, 40, 50, 60, 70, 75, 80, 82)))


def settled(name: str, options: list[dict[str, object]], x: Tensor, error: Tensor) -> Packed | None:
    """The smallest result of a codec that keeps an error, or None."""
    found = None
    for choice in options:
        packed = actcodec.codec(name, **choice).compress(x)
        if (found is None or packed.nbytes < found.nbytes) and bool(rms_error(x, packed.decompress(), 1) <= error):
            found = packed
    return found


def at_equal_error(x: Tensor, error: Tensor) -> dict[str, Packed | None]:
    """Return the packed forms of a tensor by each codec."""
    shifts: list[dict[str, object]] = [{"dqt": table, "S": 127 / 128} for table in TABLES]
    scales: list[dict[str, object]] = [{"S": scale, "scale_bits": 24} for scale in SCALES]
    return {
        "cusz": CuszCodec().compress_within(x, error),
        "cusz, no prediction": CuszCodec(dimensions=0).compress_within(x, error),
        "acgc-jpeg": AcgcJpegCodec().compress_within(x, error),
        "acgc-jpeg, verify": AcgcJpegCodec(verify=True).compress_within(x, error),
        "acgc-sfpr+zvc": actcodec.codec("acgc-sfpr+zvc").compress_within(x, error),  # type: ignore[attr-defined]
        "sfpr+zvc, best S": settled("sfpr+zvc", scales, x, error),
        "jpeg-act, best table": settled("jpeg-act", shifts, x, error),
    }


def print_ratios(kind: str, tensors: list[Tensor]) -> None:
    """The first table, for one kind of activations."""
    print(f"\n{len(tensors)} {kind} tensors; in brackets how many of them exceed the error, or cannot be so exact:\n")
    print(table_row(["codec", *(f"error {part:g}" for part in ERRORS)]))
    print("|---|" + "---|" * len(ERRORS))
    rows: dict[str, list[str]] = {}
    for part in ERRORS:
        sizes: dict[str, list[int]] = {}
        beyond: dict[str, int] = {}
        for x in tensors:
            error = (part * x.std()).view(1)
            for name, packed in at_equal_error(x, error).items():
                missed = packed is None or bool(rms_error(x, packed.decompress(), 1) > error * (1 + 1e-6))
                beyond[name] = beyond.get(name, 0) + missed
                # A tensor that no setting codes accurately enough counts uncompressed.
                sizes.setdefault(name, []).append(4 * x.numel() if packed is None else packed.nbytes)
        values = sum(x.numel() for x in tensors)
        for name, bytes_kept in sizes.items():
            note = f" ({beyond[name]})" if beyond[name] else ""
            rows.setdefault(name, []).append(f"{4 * values / sum(bytes_kept):.2f}{note}")
    for name, cells in rows.items():
        print(table_row([name, *cells]), flush=True)


def print_predictions(tensors: list[Tensor]) -> None:
    """The second table."""
    print("\nacgc-jpeg: RMS error measured / asked for, an error for each tensor, or for each of its channels:\n")
    print("| coder | deviations | errors for | median | greatest | part that exceeds |")
    print("|---|---|---|---|---|---|")
    for coder in ("jpeg-base", "jpeg-act"):
        for deviations in (0.0, 1.0, 2.0):
            codec = AcgcJpegCodec(coder=coder, deviations=deviations)
            for by_channel in (False, True):
                found: list[float] = []
                for x in tensors:
                    present = x.abs().amax((0, 2, 3)) > 0
                    spread = x.std((0, 2, 3)) if by_channel else x.std().view(1)
                    for part in (0.1, 0.2, 0.3):
                        error = (part * spread).clamp_min(1e-30)
                        predicted = codec.predicted(x)[-1]
                        finest = predicted if by_channel else predicted.square().mean().sqrt().view(1)
                        if not bool((finest <= error).all()):
                            continue  # beyond the finest table
                        measured = rms_error(x, codec.compress_within(x, error).decompress(), len(error)) / error
                        found += measured[present].tolist() if by_channel else measured.tolist()
                kind = "channels" if by_channel else "tensors"
                if found:
                    exceeding = sum(ratio > 1 for ratio in found) / len(found)
                    cells = (f"{median(found):.3f}", f"{max(found):.3f}", f"{exceeding:.3f} of {len(found)}")
                    print(table_row([coder, f"{deviations:g}", kind, *cells]), flush=True)


def print_steps(kinds: dict[str, list[Tensor]]) -> None:
    """The third table."""
    print(
        "\ncusz, errors for channels: error measured / asked for, step / that of uniform errors, dimensions of the tensors:\n"
    )
    print("| activations | error | error: least | median | greatest | step: least | median | greatest | dimensions |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind, tensors in kinds.items():
        for part in (0.02, 0.1, 0.3):
            measured, steps, dimensions = [], [], []
            for x in tensors:
                x = x[:, x.std((0, 2, 3)) > 0].contiguous()
                error = part * x.std((0, 2, 3))
                packed = CuszCodec().compress_within(x, error)
                measured.append(rms_error(x, packed.decompress(), len(error)) / error)
                steps.append(packed.steps / (2 * UNIFORM_BOUND * error))
                dimensions.append(str(packed.dimensions))
            cells = [
                f"{float(number):.3f}"
                for found in (torch.cat(measured), torch.cat(steps))
                for number in (found.min(), found.median(), found.max())
            ]
            print(table_row([kind, f"{part:g}", *cells, " ".join(dimensions)]), flush=True)


def entropy(values: Tensor) -> float:
    """Bits of integers that are coded one by one as well as can be."""
    counts = torch.unique(values, return_counts=True)[1].double()
    return float(-(counts * (counts / counts.sum()).log2()).sum())


def print_bytes(tensors: list[Tensor]) -> None:
    """The fourth table."""
    print("\ncusz, bits per value: entropy of single differences; the codec's coder; deflate of one byte a difference:\n")
    print("| error | dimensions | entropy | cusz | Huffman codes only | run lengths | all of deflate |")
    print("|---|---|---|---|---|---|---|")
    strategies = (zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_DEFAULT_STRATEGY)
    values = sum(x.numel() for x in tensors)
    for part in (0.05, 0.3):
        for dimensions in range(MAX_DIMENSIONS + 1):
            bits = [0.0] * 5
            for x in tensors:
                steps = (part * x.std() * 2 * UNIFORM_BOUND).view(1)
                left = differences(whole_multiples(x, steps), dimensions)
                raw = left.clamp(-127, 127).to(torch.int8).numpy().tobytes()
                packers = [zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS, 9, strategy) for strategy in strategies]
                sizes = [len(packer.compress(raw) + packer.flush()) for packer in packers]
                for place, size in enumerate((entropy(left), 8 * encode(left).nbytes, *(8 * size for size in sizes))):
                    bits[place] += size
            print(table_row([f"{part:g}", dimensions, *(f"{size / values:.3f}" for size in bits)]), flush=True)


def best(action: Callable[[], object], runs: int) -> float:
    """Seconds of processor time of the fastest of some runs."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        action()
        times.append(time.process_time() - begin)
    return min(times)


def print_speed(x: Tensor, runs: int) -> None:
    """The fifth table."""
    error = (0.1 * x.std((0, 2, 3))).clamp_min(1e-30)
    print(
        f"\nSpeed on a tensor {tuple(x.shape)}, an error of 0.1 for each channel; million values per second (processor time):\n"
    )
    print("| codec | compress | decompress |")
    print("|---|---|---|")
    rate = x.numel() / 1e6
    print(f"| steps for the error alone | {rate / best(lambda: steps_of_rms(x, error, TorchBackend()), runs):.1f} | |")
    for name in ("cusz", "acgc-jpeg", "acgc-sfpr+zvc"):
        codec = actcodec.codec(name)
        assert isinstance(codec, ErrorBoundedCodec)
        packed = codec.compress_within(x, error)
        down = best(partial(codec.compress_within, x, error), runs)
        print(f"| {name} | {rate / down:.1f} | {rate / best(packed.decompress, runs):.1f} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--images", type=int, default=16, help="images of the batch that are measured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dense: list[Tensor] = []
    sparse: list[Tensor] = []

    def keep(tensor: actcodec.training.SavedTensor, x: Tensor) -> None:
        if AcgcJpegCodec().fits(x.shape):
            (sparse if tensor.producer == "relu" else dense).append(x[: arguments.images].clone())

    images = load(arguments.dataset, arguments.data, arguments.limit)
    recipe = experiment.Recipe(width=arguments.width, steps=arguments.steps)
    recorder = RecordingPolicy({arguments.steps - 1}, keep)
    run = experiment.train(recipe, images, "none", recorder, arguments.seed)
    values = sum(x.numel() for x in (*dense, *sparse))
    print(
        f"ResNet of width {recipe.width} on {images.name}, {recipe.steps} steps, accuracy {run.score:.1f} %; {values} values."
    )
    print_ratios("dense (convolutions, sums, input)", dense)
    print_ratios("sparse (ReLU)", sparse)
    print_predictions(dense)
    print_steps({"dense": dense, "sparse": sparse})
    print_bytes([*dense, *sparse])
    print_speed(max(dense, key=lambda x: x.numel()), arguments.runs)


if __name__ == "__main__":
    main()
