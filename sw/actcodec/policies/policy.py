"""Policies: ordered lists of rules, as plain data, that choose the codec of each saved tensor.

The ready-made policies follow JPEG-ACT's table "which activation gets what", and its counterparts of DIVISION and ActNN:

======================================  ===========  =========  ========  ===============  ========  =======
activation                              jpeg_act     jpeg_base  sfpr      sfpr_zvc         division  actnn
======================================  ===========  =========  ========  ===============  ========  =======
dense: conv, sum, the network's input   jpeg-act     jpeg-base  sfpr      sfpr+zvc         division  actnn
ReLU into anything that needs no value  brc          brc        brc       brc              brc       brc
ReLU, pool, dropout into other layers   sfpr+zvc     sfpr       sfpr      sfpr+zvc         division  actnn
shapes that do not fit (W < 8 ...)      sfpr         sfpr       sfpr      sfpr+zvc         actnn     actnn
======================================  ===========  =========  ========  ===============  ========  =======

A ReLU saves its own result and wants only its sign; a convolution after it saves the same tensor and wants its values.
Whichever comes first, the tensor is kept once, in the form that serves both. Softmax results and whatever a loss function
saves stay exact: they are small and the whole gradient passes through them.

Parameters, buffers, statistics, integers, boolean masks and tensors of rank 0 and 1 never reach a policy; they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol, runtime_checkable

import torch
from cdu_tools.errors import UserError
from torch import Tensor

from actcodec import codecs
from actcodec.codecs import Codec
from actcodec.saved.operations import UNKNOWN, Operation
from actcodec.saved.statistics import Statistics, TensorRecord

#: Used in place of a codec to keep a tensor as it is.
EXACT = "exact"
#: Dtypes that the codecs of this project accept.
CODED_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
#: ``factory(name, **options)`` makes a codec.
CodecFactory = Callable[..., Codec]


@dataclass(frozen=True)
class SavedTensor:
    """The properties of a saved tensor that a rule can test."""

    producer: str  #: operation that produced it: conv, sum, relu, pool, dropout, norm, linear, input ...
    consumer: str  #: operation that saves it
    shape: tuple[int, ...]
    dtype: torch.dtype
    module: str = ""  #: name of the module in whose forward it is saved, as in ``model.named_modules()``
    smooth: bool = True  #: True if the consumer's gradient tolerates small errors of it (:mod:`actcodec.saved.gradient_needs`)
    function: str = ""  #: the consumer's own name in lower case without underscores (``layernorm`` among the norms)
    loss: bool = False  #: True if it belongs to a loss (:mod:`actcodec.saved.loss`), whose gradient tolerates no error


@dataclass(frozen=True)
class CodecSpec:
    """A codec by name, with options; made when a policy is first used."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """Give ``codec`` to tensors that match every given condition.

    Parameters
    ----------
    codec
        A name (``jpeg-act``, or ``exact``), a CodecSpec, or a codec object.
    producer, consumer
        Operation names; none given means any. A consumer may be named by its function too.
    module
        Glob on the module's name (``layer1.*``).
    dtypes
        Number formats; none given means any floating-point format.
    min_rank
        Least number of dimensions.
    """

    codec: str | CodecSpec | Codec
    producer: tuple[str, ...] = ()
    consumer: tuple[str, ...] = ()
    module: str = "*"
    dtypes: tuple[torch.dtype, ...] = ()
    min_rank: int = 0

    def matches(self, tensor: SavedTensor) -> bool:
        """Return whether all conditions hold."""
        return (
            (not self.producer or tensor.producer in self.producer)
            and (not self.consumer or tensor.consumer in self.consumer or tensor.function in self.consumer)
            and (not self.dtypes or tensor.dtype in self.dtypes)
            and len(tensor.shape) >= self.min_rank
            and fnmatchcase(tensor.module, self.module)
        )


class Observer(Protocol):
    """Interface through which a policy follows one context."""

    def codec_of(self, tensor: SavedTensor, codec: Codec) -> Codec:
        """Return the codec object for the next distinct tensor, for which ``codec`` was chosen."""

    def finished(self, operation: Operation, result: Any) -> None:
        """Called when an operation that saved compressed tensors (:attr:`Operation.saved`) has computed its result."""


@runtime_checkable
class GroupObserver(Observer, Protocol):
    """An observer that can keep several tensors in one copy."""

    def member_codec(self, x: Tensor, tensor: SavedTensor, codec: Codec, operation: Operation) -> Codec:
        """Return a new codec object for a tensor that belongs to a group; ``codec`` for other tensors."""

    def has_signs(self, x: Tensor, operation: Operation) -> bool:
        """Return whether a group holds all signs of a tensor that ``operation`` saves, so that they cost nothing."""

    def counted(self, codec: Codec, record: TensorRecord) -> None:
        """Called with the statistics entry ``record`` of a tensor that ``codec`` has compressed."""

    def replaced(self, codec: Codec, record: TensorRecord) -> None:
        """Called when the tensor of ``record`` is needed exactly and replaces the form that ``codec`` made."""


class Policy:
    """Ordered rules; the first that matches and whose codec fits shape and number format decides, else ``default``.

    A codec that keeps only signs (``brc``) is used only where a ReLU saves its own result, because no other gradient can be
    computed from signs. A lossy codec is skipped where an error could make the gradient infinite, NaN or zero
    (:mod:`actcodec.saved.gradient_needs`). Custom autograd functions are not analysed; they get a lossy codec only from a rule
    that names their consumer, ``unknown``.

    Parameters
    ----------
    rules
        Rules in order of precedence.
    default
        As ``Rule.codec``; tensors that it does not fit stay exact.
    codec_factory
        Makes codecs from names, by default ``actcodec.codec``; a testbench passes one whose codecs run elsewhere.
    keep_signs
        True to keep the signs that a ReLU saves beside the values that another operation saves of the same tensor. A codec of
        few bits turns small positive values into zeros, which would block the gradient.
    companions
        True to keep masks, pool indices, and inputs of which only the shape is needed, in their smallest lossless form.

    Raises UserError for unknown codecs and options.
    """

    #: True if the observer is also called for operations that save no compressed tensor.
    every_operation = False

    def __init__(
        self,
        rules: Sequence[Rule],
        default: str | CodecSpec | Codec = EXACT,
        codec_factory: CodecFactory | None = None,
        *,
        keep_signs: bool = False,
        companions: bool = True,
    ) -> None:
        self.rules = tuple(rules)
        self.default = default
        self.keep_signs = keep_signs
        self.companions = companions
        #: Name and options of the ready-made policy that made this object, if any.
        self.origin: CodecSpec | None = None
        #: True after the warning about codecs without kernels on a device (:mod:`actcodec.policies.kernels`).
        self.kernels_told = False
        factory = codec_factory or codecs.codec
        self._codecs: dict[str, Codec] = {}
        self._by_rule = [self._resolve(rule.codec, factory) for rule in self.rules]
        self._by_default = self._resolve(default, factory)

    def _resolve(self, codec: str | CodecSpec | Codec, factory: CodecFactory) -> Codec | None:
        """Return the codec object, the same one for equal specifications; None for exact."""
        if codec == EXACT:
            return None
        spec = CodecSpec(codec) if isinstance(codec, str) else codec
        key = repr(spec)
        if key not in self._codecs:
            self._codecs[key] = factory(spec.name, **spec.options) if isinstance(spec, CodecSpec) else spec
        return self._codecs[key]

    def choose(self, tensor: SavedTensor) -> Codec | None:
        """Return the codec for a tensor; None means that it is kept exactly."""
        chosen = [(rule, codec) for rule, codec in zip(self.rules, self._by_rule, strict=True) if rule.matches(tensor)]
        for rule, codec in (*chosen, (None, self._by_default)):
            if codec is None:
                return None
            if _bears(rule, codec, tensor) and codec.fits(tensor.shape) and codec.takes_dtype(tensor.dtype):
                return codec
        return None

    @property
    def codecs_of_rules(self) -> tuple[Codec, ...]:
        """Return the distinct codecs of the rules."""
        return tuple(self._codecs.values())

    def set_epoch(self, epoch: int) -> None:
        """Tell every codec the number of finished epochs (for the schedule optLH)."""
        for codec in self._codecs.values():
            codec.set_epoch(epoch)

    def restart(self, seed: int) -> None:
        """Restart the random numbers of every codec from a seed."""
        for codec in self._codecs.values():
            codec.restart(seed)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that passes from one step to the next: random numbers, epoch, and learnt values.

        The state consists of plain values, dtypes and tensors, so that ``torch.load(weights_only=True)`` accepts a file
        written by ``torch.save``. Call this method between the backward pass of one step and the forward pass of the next.
        """
        codecs = [(codec.name, codec.state_dict()) for codec in self._codecs.values()]
        return {"kind": type(self).__name__, "codecs": codecs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a policy with the same name and options; the next step is then the same to the last bit.

        Tensors of the state may be on another device than before. Raises UserError for the state of another policy.
        """
        kind, codecs = _state_parts(state)
        theirs, mine = [name for name, _ in codecs], [codec.name for codec in self._codecs.values()]
        my_kind = type(self).__name__
        if (kind, theirs) != (my_kind, mine):
            raise UserError(
                f"the state is that of {kind} with the codecs {', '.join(theirs) or 'none'}, this is {my_kind} with "
                f"{', '.join(mine) or 'none'}: load it into a policy of the name and the options that it was saved with"
            )
        for codec, (_, one) in zip(self._codecs.values(), codecs, strict=True):
            codec.load_state_dict(one)

    def set_samples(self, samples: Tensor | None) -> None:
        """Set the data-set indices, integers (N,), of the next contexts' samples; only adaptive policies use them."""
        del samples

    def observer(self) -> Observer | None:
        """Return the observer of a context that opens, or None."""
        return None

    def context_closed(self, statistics: Statistics) -> None:
        """Called when a context closes, before its backward pass, with its statistics; only adaptive policies use them."""
        del statistics


def _state_parts(state: object) -> tuple[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return the kind of policy in a saved state, and the codecs' names and states; UserError for what is no state."""
    codecs = state.get("codecs", ()) if isinstance(state, Mapping) else None
    if not isinstance(state, Mapping) or not isinstance(codecs, (list, tuple)):
        raise UserError(f"a {type(state).__name__} without the state of a policy was given: load what state_dict() returned")
    pairs = [(str(pair[0]), pair[1]) for pair in codecs if isinstance(pair, (list, tuple)) and len(pair) == 2]
    if len(pairs) < len(codecs) or not all(isinstance(one, Mapping) for _, one in pairs):
        raise UserError("the state has codecs that are no pairs of a name and a state: load what state_dict() returned")
    return str(state.get("kind", "no policy")), pairs


def check_state(state: Mapping[str, Any], *keys: str) -> None:
    """Raise UserError for a saved state that lacks one of these keys."""
    for key in keys:
        if key not in state:
            raise UserError(f"the state has no {key!r}: load what state_dict() returned")


#: Consumers for which a rule that names them vouches that their gradients tolerate errors.
_VOUCHED = (UNKNOWN, "crossentropy")


def _bears(rule: Rule | None, codec: Codec, tensor: SavedTensor) -> bool:
    """Return whether the gradient can be computed from the form of a codec; ``rule`` is None for a policy's default."""
    if codec.signs_only:
        return tensor.producer == tensor.consumer == "relu"
    named = (tensor.consumer, tensor.function)
    vouched = rule is not None and any(name in rule.consumer and name in named for name in _VOUCHED)
    return (tensor.smooth and not tensor.loss) or codec.lossless or vouched
