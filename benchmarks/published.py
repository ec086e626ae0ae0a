"""Scores and ratios that the papers report, for comparison; none of them was measured here."""

from __future__ import annotations

from cdu_tools.report import Table

#: Network -> method -> (score in per cent or dB, ratio). AC-GC (Evans and Aamodt, NeurIPS 2021), mean of 3 or 5 runs; its
#: column "JPEG-ACT" is the schedule optL5H.
AC_GC = {
    "CIFAR-10 VGG16": {
        "base": (93.6, 1.0),
        "AutoQuantZ": (93.5, 7.4),
        "AutoCuSZ": (93.5, 9.4),
        "AutoJPEGZ": (92.9, 12.5),
        "JPEG-ACT": (92.4, 11.9),
        "GridQuantZ": (93.5, 6.3),
    },
    "CIFAR-10 ResNet-50": {
        "base": (94.9, 1.0),
        "AutoQuantZ": (95.0, 4.2),
        "AutoCuSZ": (94.7, 15.5),
        "AutoJPEGZ": (94.3, 9.2),
        "JPEG-ACT": (94.4, 7.5),
        "GridQuantZ": (95.0, 5.7),
    },
    "CIFAR-10 WRN": {
        "base": (95.8, 1.0),
        "AutoQuantZ": (95.9, 6.5),
        "AutoCuSZ": (95.8, 14.6),
        "AutoJPEGZ": (95.3, 11.7),
        "JPEG-ACT": (94.2, 10.9),
        "GridQuantZ": (96.0, 7.6),
    },
    "Div2K VDSR": {
        "base": (36.1, 1.0),
        "AutoQuantZ": (36.1, 5.1),
        "AutoCuSZ": (35.8, 25.2),
        "AutoJPEGZ": (36.1, 7.9),
        "JPEG-ACT": (35.4, 9.1),
        "GridQuantZ": (36.0, 6.7),
    },
    "ImageNet ResNet-18": {
        "base": (68.6, 1.0),
        "AutoQuantZ": (68.5, 4.2),
        "AutoCuSZ": (68.1, 6.8),
        "AutoJPEGZ": (68.1, 8.1),
        "JPEG-ACT": (67.3, 7.2),
        "GridQuantZ": (68.5, 2.9),
    },
    "ImageNet ResNet-50": {
        "base": (72.3, 1.0),
        "AutoQuantZ": (72.7, 4.8),
        "AutoCuSZ": (72.5, 10.1),
        "AutoJPEGZ": (71.5, 8.5),
        "JPEG-ACT": (71.6, 5.9),
        "GridQuantZ": (72.5, 4.9),
    },
}
#: The same of other papers; ImageNet top-1 in per cent, uncompressed score first.
OTHERS = (
    ("ActNN (ICML 2021), L3, 2 bits", "ImageNet ResNet-50", 77.1, 76.9, 12.2),
    ("DIVISION (ICML 2023)", "ImageNet ResNet-50", 76.2, 75.9, 10.4),
)
_HEAD = ("paper", "network", "uncompressed", "score", "ratio")


def table() -> str:
    """Both as markdown tables."""
    methods = list(next(iter(AC_GC.values())))
    rows = []
    for network, row in AC_GC.items():
        cells = (f"{score:g}" + (f" ({ratio:g})" if method != "base" else "") for method, (score, ratio) in row.items())
        rows.append([network, *cells])
    others = [[name, network, f"{base:g}", f"{score:g}", f"{ratio:g}"] for name, network, base, score, ratio in OTHERS]
    tables = Table(["AC-GC's table: score (ratio)", *methods], rows), Table(_HEAD, others)
    return "\n\n".join(one.markdown() for one in tables)
