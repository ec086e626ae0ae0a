"""AC-GC's methods as policies (docs/methods/acgc.md).

==========  ==========================================================================================================
autoquant   fixed point, as many bits as the error bound asks for
autoquantz  the same, and zeros cost one bit
autocusz    Lorenzo prediction, quantisation within the error bound, entropy coding
autojpeg    the coarsest quality of JPEG-BASE that keeps the bound; shapes that do not fit: sfpr+zvc with that scale
autojpegz   the same for dense tensors; what ReLU, pools and dropout make: sfpr+zvc with the scale that keeps the bound
autoshift   the bound sets mode, shift table, bits, scales and reconstruction point of a unit for the steps that follow
gridquantz  the comparison: one number of bits for everything, see :func:`actcodec.study.grid_search.least_bits`
==========  ==========================================================================================================

``autoquant`` and ``autoquantz`` have the hardware's widths, 1, 2, 4 and 8 bits, one for a tensor, so that they run on any
backend; ``widths="any"`` has the paper's, 1 to 16 bits, and one for each channel where bounds are the channels'.

``autocusz``, ``autojpeg`` and ``autojpegz`` are those of docs/methods/error_bounded.md, software only. ``autoshift`` is that of
docs/methods/steered.md; it runs on any backend that has its modes.

In all of them ReLU keeps its signs in one bit per value, also beside the values that the next layer wants, and dropout its
mask; losses and softmax results stay exact.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from cdu_tools.errors import UserError

from actcodec.codecs import codec_options
from actcodec.codecs.acgc.steered_codec import SteeredCodec
from actcodec.policies.bounds.bound_listener import BoundOptions
from actcodec.policies.bounds.error_bounds import ErrorBoundPolicy
from actcodec.policies.bounds.steered import SteeredPolicy
from actcodec.policies.policy import CODED_DTYPES, EXACT, CodecFactory, CodecSpec, Policy, Rule
from actcodec.policies.tables.rules import SPARSE, first_rules

#: Options common to the policies that listen to gradients.
BOUND_OPTIONS = (*(option.name for option in fields(BoundOptions)), "interval", "window")
_WIDTHS = {"autoquant": ("autoquant", "acgc-quant"), "autoquantz": ("autoquantz", "acgc-quantz")}
_HARDWARE, _ANY = "hardware", "any"
_HARDWARE_OPTIONS = ("seed", "scale_bits", "nonfinite", "backend")
_GRID = "acgc-quantz"
_STEERED = "autoshift"
_STEERING = ("settling",)
#: Codecs for dense tensors, for sparse ones, and for shapes that neither fits.
_SOFTWARE: dict[str, tuple[str, str | None, str | None]] = {
    "autocusz": ("cusz", None, None),
    "autojpeg": ("acgc-jpeg", None, "acgc-sfpr+zvc"),
    "autojpegz": ("acgc-jpeg", "acgc-sfpr+zvc", "acgc-sfpr+zvc"),
}


def error_bound_policy(
    codec: str,
    codec_factory: CodecFactory | None = None,
    *,
    sparse: str | None = None,
    unfit: str | None = None,
    **options: Any,
) -> ErrorBoundPolicy:
    """Return the policy of a codec with an error bound, for all activations.

    Parameters
    ----------
    codec, sparse, unfit
        Names of codecs: for every shape that ``codec`` fits; for results of ReLU, pools and dropout (None: ``codec``); for
        shapes that neither fits (None: they stay exact).
    codec_factory
        As in :class:`Policy`.
    options
        Options of :class:`BoundOptions`; interval (100) and window (10) as in :class:`ErrorBoundPolicy`; and options of the
        codecs, each of which gets those it knows. UserError for others.
    """
    allowed = error_bound_options(codec, sparse, unfit)
    for option in options:
        if option not in allowed:
            raise UserError(f"codec {codec!r} with an error bound has no option {option!r}: use {', '.join(allowed)}")
    strictness, mine = _taken(options)
    rules = [
        Rule(
            CodecSpec(name, {key: options[key] for key in codec_options(name) if key in options}), producer, dtypes=CODED_DTYPES
        )
        for name, producer in ((sparse, SPARSE), (codec, ()), (unfit, ()))
        if name is not None
    ]
    return ErrorBoundPolicy((*first_rules(options), *rules), strictness, codec_factory=codec_factory, **mine)


def autoshift_policy(codec_factory: CodecFactory | None = None, **options: Any) -> SteeredPolicy:
    """Return the policy whose unit registers follow the bounds, for all activations. Options as for :func:`acgc_policy`."""
    strictness, mine = _taken(options, *_STEERING)
    rules = (*first_rules(options), Rule(SteeredCodec(**options), dtypes=CODED_DTYPES))
    return SteeredPolicy(rules, strictness, codec_factory=codec_factory, **mine)


def _taken(options: dict[str, Any], *others: str) -> tuple[BoundOptions, dict[str, Any]]:
    """Return the strictness of bounds and the other arguments of a policy that listens, all removed from ``options``."""
    mine = {name: options.pop(name) for name in (*BOUND_OPTIONS, *others) if name in options}
    strictness = BoundOptions(**{key: mine.pop(key) for key in (field.name for field in fields(BoundOptions)) if key in mine})
    return strictness, mine


def error_bound_options(*codecs: str | None) -> tuple[str, ...]:
    """Return the names of the options of :func:`error_bound_policy` for some codecs."""
    return tuple(dict.fromkeys((*BOUND_OPTIONS, *(option for codec in codecs if codec for option in codec_options(codec)))))


#: Names of the policies, with the options that they take.
ACGC: dict[str, tuple[str, ...]] = {
    "autoquant": (*BOUND_OPTIONS, "widths", *_HARDWARE_OPTIONS),
    "autoquantz": (*BOUND_OPTIONS, "widths", *_HARDWARE_OPTIONS),
    "gridquantz": tuple(codec_options(_GRID)),
    _STEERED: (*BOUND_OPTIONS, *_STEERING, *(option.name for option in fields(SteeredCodec))),
    **{name: error_bound_options(*codecs) for name, codecs in _SOFTWARE.items()},
}


def acgc_policy(name: str, codec_factory: CodecFactory | None = None, **options: Any) -> Policy:
    """Return a policy of the module's table.

    Options of autoquant and autoquantz: those of :class:`BoundOptions`, interval (100) and window (10), widths (``hardware``
    or ``any``), seed, backend, and with the hardware's widths scale_bits and nonfinite. Options of gridquantz: bits, seed and
    backend as for codec ``acgc-quantz``. Options of autoshift: those of :class:`BoundOptions`, interval, window, settling
    (3), and those of :class:`~actcodec.codecs.acgc.steered_codec.SteeredCodec`. Options of the others: those of
    :class:`BoundOptions`, interval, window, and those of their codecs. UserError for others.
    """
    for option in options:
        if option not in ACGC[name]:
            raise UserError(f"codec {name!r} has no option {option!r}: use {', '.join(ACGC[name])}")
    if name == "gridquantz":
        rules = (*first_rules({}), Rule(CodecSpec(_GRID, options), dtypes=CODED_DTYPES))
        return Policy(rules, EXACT, codec_factory, keep_signs=True)
    if name == _STEERED:
        return autoshift_policy(codec_factory, **options)
    if name in _SOFTWARE:
        codec, sparse, unfit = _SOFTWARE[name]
        return error_bound_policy(codec, codec_factory, sparse=sparse, unfit=unfit, **options)
    widths = options.pop("widths", _HARDWARE)
    if widths not in (_HARDWARE, _ANY):
        raise UserError(f"widths = {widths!r} is not allowed: use {_HARDWARE} or {_ANY}")
    return error_bound_policy(_WIDTHS[name][widths == _ANY], codec_factory, **options)
