"""Policy ``autoshift``: AC-GC's bounds set the registers of a unit for the jobs of the next steps (docs/methods/steered.md).

A unit is told mode, shift table, bits, scales and reconstruction point before it gets a tensor. So all of these follow from
earlier steps: the error that the gradients allow (:mod:`actcodec.policies.error_bounds`), the largest magnitudes so far, and
what the error was when it was last measured (:mod:`actcodec.policies.steering`). Measured is in every step that listens and
in the few after it: the tensor is compressed in each mode that it may have, decoded, and compared. Of the modes that keep the
error the one with the fewest bytes is used.

Where nothing is known yet, and where values are suddenly more than twice as large as before, tensors have 8 bits with scales of
their own, which needs a look at them. Where not everything that reads them has a bound, they may be off by 1/252 of the largest
magnitude, or by less where a bound that is known asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from cdu_tools.errors import UserError
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.codecs.acgc.error_bounded import DEFAULT_RELATIVE_ERROR
from actcodec.codecs.acgc.steered_codec import FIRST_KIND, KINDS, SteeredCodec, positive, scale_view
from actcodec.codecs.compressed import Compressed
from actcodec.golden.blocks import by_channel
from actcodec.policies.bound_listener import BoundOptions
from actcodec.policies.error_bounds import BoundedLayer, BoundSlot, ErrorBoundPolicy
from actcodec.policies.policy import CodecFactory, Rule
from actcodec.policies.recurring import SlotCodec
from actcodec.policies.steering import Lane

#: What part of the largest magnitude so far counts a step later.
_LASTING = 0.98
#: Times that magnitude, and a tensor has scales of its own: a channel that was dead, or has no centre taken off any more.
_SURPRISE = 2.0
#: Steps after one that listens in which errors are measured.
SETTLING = 3
#: In place of a setting: scales of the tensor itself.
UNSTEERED = "unsteered"


@dataclass(frozen=True)
class SteeredLayer(BoundedLayer):
    """What one saved tensor had in the last step."""

    setting: str  #: mode, and shift and point or bits, as registers had them
    used: float | None  #: error over allowed error when it was last measured, root mean square over channels
    measured: bool  #: whether that was in the last step


@dataclass
class SteeredSlot(BoundSlot):
    """What is known of a tensor: what its layers ask, how large it is, and what each mode made of it."""

    largest: Tensor | None = None  #: magnitudes of what shares a scale, float64 (scales,), CPU
    lanes: dict[str, Lane] = field(default_factory=dict)  #: by kind of setting
    chosen: str = ""  #: a kind; none before the first measurement
    setting: str = ""  #: of the last step
    used: float | None = None  #: error over allowed error of what was kept, when it was last measured
    measured_at: int = 0  #: step

    def allowed(self, variance_growth: float) -> Tensor | None:
        """The error to steer to, float64 (1,) or (scales,), CPU; None before the tensor has been seen."""
        if self.largest is None:
            return None
        error = self.error(variance_growth)
        if error is not None:
            error = error.to("cpu", self.largest.dtype)
            error = error if len(error) in (1, len(self.largest)) else error.amin().view(1)
        if error is None or not self.complete:
            default = positive(self.largest) * DEFAULT_RELATIVE_ERROR
            error = default if error is None else default.minimum(error)
        return error

    def surprised(self, largest: Tensor) -> bool:
        """Whether magnitudes are so far beyond those before that most of the values would saturate."""
        return self.largest is None or len(largest) != len(self.largest) or bool((largest > _SURPRISE * self.largest).any())

    def seen(self, largest: Tensor) -> None:
        """Remember the largest magnitudes of this step."""
        known = self.largest
        self.largest = largest if known is None or len(known) != len(largest) else largest.maximum(_LASTING * known)

    def lanes_for(self, codec: SteeredCodec, shape: Sequence[int]) -> dict[str, Lane]:
        """One for each kind of setting that the tensor may have."""
        for name in codec.kinds_of(shape):
            self.lanes.setdefault(name, Lane.new(codec, KINDS[name].mode))
        return self.lanes

    def state_dict(self) -> dict[str, Any]:
        """See :class:`~actcodec.policies.recurring.Slot`."""
        return super().state_dict() | {"lanes": {name: lane.state_dict() for name, lane in self.lanes.items()}}

    def load_state_dict(self, state: Mapping[str, Any], reader_of: Callable[[Mapping[str, Any]], Any]) -> None:
        """See :class:`~actcodec.policies.recurring.Slot`."""
        super().load_state_dict(state, reader_of)
        self.lanes = {name: Lane(**one) for name, one in state["lanes"].items()}


class _SteeredSlotCodec(SlotCodec[SteeredSlot, SteeredCodec]):
    """Compresses with the registers as they are, and measures what they do where that is due."""

    def __init__(self, slot: SteeredSlot, codec: SteeredCodec, step: int, variance_growth: float, *, measures: bool) -> None:
        super().__init__(slot, codec)
        self._step, self._variance_growth, self._measures = step, variance_growth, measures

    def compress(self, x: Tensor) -> Packed:
        """See :class:`Codec`."""
        slot, codec = self.slot, self._codec
        largest = codec.largest(x.detach().contiguous())
        allowed = slot.allowed(self._variance_growth)
        if allowed is None or slot.surprised(largest):
            slot.setting, packed = UNSTEERED, codec.compress(x)
        else:
            packed = self._steered(x, allowed)
        slot.seen(largest)
        slot.step, slot.values, slot.kept = self._step, prod(x.shape), packed.nbytes
        return packed

    def _steered(self, x: Tensor, allowed: Tensor) -> Compressed:
        slot, codec = self.slot, self._codec
        assert slot.largest is not None, "what is allowed follows from it"
        lanes, reach = slot.lanes_for(codec, x.shape), positive(slot.largest)
        # Errors are in proportion to a channel's largest magnitude, as steps are.
        part = 1 / rms(reach / allowed)
        settings = {name: codec.setting(name, lane.step(part), reach, lane.point) for name, lane in lanes.items()}
        chosen = slot.chosen or FIRST_KIND
        slot.setting = str(settings[chosen])
        if not self._measures:
            return codec.compress_with(x, settings[chosen])
        tried = {name: codec.compress_with(x, setting) for name, setting in settings.items()}
        for name, lane in lanes.items():
            lane.correct(self._used(x, tried[name], allowed), part, KINDS[name].least_step, tried[name].nbytes)
        slot.used, slot.measured_at, slot.chosen = lanes[chosen].used, self._step, min(lanes, key=lambda name: lanes[name].cost)
        return tried[chosen]

    def _used(self, x: Tensor, packed: Compressed, allowed: Tensor) -> dict[int, float]:
        """Error over what is allowed, root mean square over channels where these have bounds, by reconstruction point."""
        found = {}
        for point in self._codec.points_of(packed.header.mode):
            restored = self._codec.decompress(replace(packed, header=replace(packed.header, point=point)))
            squares = (restored.double() - x.detach().double()).square_()
            by_scale = squares.view(1, 1, -1) if len(allowed) == 1 else by_channel(squares, scale_view(x.shape))
            found[point] = rms(by_scale.mean((0, 2)).sqrt_().cpu() / allowed)
        return found


def rms(numbers: Tensor) -> float:
    """Root mean square."""
    return float(numbers.square().mean().sqrt())


class SteeredPolicy(ErrorBoundPolicy):
    """Rules whose codecs of kind :class:`SteeredCodec` are steered; see the module. One object serves one model.

    Parameters
    ----------
    rules, options, interval, window, codec_factory
        As for :class:`ErrorBoundPolicy`; ``options.independent`` is taken at its word, though not all errors are: rounding at
        random makes such errors, that of the shift quantiser does not.
    settling
        Steps after one that listens in which errors are measured too, 0 or more.
    """

    bounded = SteeredCodec

    def __init__(
        self,
        rules: Sequence[Rule],
        options: BoundOptions | None = None,
        interval: int = 100,
        window: int = 10,
        settling: int = SETTLING,
        codec_factory: CodecFactory | None = None,
    ) -> None:
        if isinstance(settling, bool) or not isinstance(settling, int) or settling < 0:
            raise UserError(f"settling = {settling!r} is not allowed: use 0 or more steps")
        self.settling = settling
        super().__init__(rules, options, interval, window, codec_factory, SteeredSlot)

    def slot_codec(self, slot: BoundSlot, codec: Codec, step: int) -> _SteeredSlotCodec:
        """See :class:`ErrorBoundPolicy`."""
        assert isinstance(slot, SteeredSlot), "made by this policy"
        assert isinstance(codec, SteeredCodec), "others stay as they are"
        measures = (step - 1) % self.interval <= self.settling
        return _SteeredSlotCodec(slot, codec, step, self.options.variance_growth, measures=measures)

    @property
    def layers(self) -> Sequence[SteeredLayer]:
        """See :class:`ErrorBoundPolicy`."""
        return [self._layer(slot) for slot in self._slots.of_step(self._step)]

    def _layer(self, slot: BoundSlot) -> SteeredLayer:
        assert isinstance(slot, SteeredSlot), "made by this policy"
        return SteeredLayer(
            **vars(super()._layer(slot)), setting=slot.setting, used=slot.used, measured=slot.measured_at == slot.step
        )
