"""Set a unit's registers for the jobs of the next steps from AC-GC's bounds: policy ``autoshift`` (docs/methods/steered.md).

A unit needs mode, shift table, bits, scales and reconstruction point before it gets a tensor. All of these therefore follow
from earlier steps: the error that the gradients allow (:mod:`actcodec.policies.bounds.error_bounds`), the largest magnitudes so
far, and the error when it was last measured (:mod:`actcodec.policies.bounds.steering`). Every step that listens to gradients
and the few steps after it measure the error: the tensor is compressed in each mode that fits it, decoded, and compared. Among
the modes within the allowed error the one with the fewest bytes is used.

A tensor without a measurement, or whose values are suddenly more than twice as large as before, gets 8 bits with scales
computed from its own values. A tensor with a reader that has no bound may be off by 1/252 of its largest magnitude, or by
less if a known bound demands it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from cdu_spec.coding import ShiftCoding
from cdu_tools.errors import UserError
from cdu_tools.numbers import is_whole
from torch import Tensor

from actcodec.codecs import Codec, Packed
from actcodec.codecs.acgc.error_bounded import DEFAULT_RELATIVE_ERROR
from actcodec.codecs.acgc.steered_codec import FIRST_KIND, KINDS, SteeredCodec, positive, scale_view
from actcodec.codecs.compressed import Compressed
from actcodec.golden.blocks import by_channel
from actcodec.policies.bounds.bound_listener import BoundOptions
from actcodec.policies.bounds.error_bounds import BoundedLayer, BoundSlot, ErrorBoundPolicy
from actcodec.policies.bounds.steering import Lane
from actcodec.policies.policy import CodecFactory, Rule
from actcodec.policies.recurring import SlotCodec

#: Part of the largest magnitude so far that still counts one step later.
_LASTING = 0.98
#: Growth of the largest magnitude beyond which a tensor uses scales of its own, as after a dead channel or a removed centre.
_SURPRISE = 2.0
#: Steps after a listening step in which errors are measured.
SETTLING = 3
#: Name of the setting of a tensor with scales of its own.
UNSTEERED = "unsteered"


@dataclass(frozen=True)
class SteeredLayer(BoundedLayer):
    """Size, bits, error and registers of one saved tensor in the last step."""

    setting: str  #: mode with shift and point, or with bits, as set in the registers
    used: float | None  #: last measured error over allowed error, root mean square over channels
    measured: bool  #: True when the error was measured in the last step


@dataclass
class SteeredSlot(BoundSlot):
    """Knowledge about one tensor: demands of its layers, magnitudes, and the outcome of each mode."""

    largest: Tensor | None = None  #: largest magnitudes by scale, float64 (scales,), CPU
    lanes: dict[str, Lane] = field(default_factory=dict)  #: by kind of setting
    chosen: str = ""  #: kind of setting; empty before the first measurement
    setting: str = ""  #: setting of the last step
    used: float | None = None  #: last measured error of the kept values over allowed error
    measured_at: int = 0  #: step of the last measurement

    def allowed(self, variance_growth: float) -> Tensor | None:
        """Return the target error, float64 (1,) or (scales,), CPU; None before the tensor has been seen."""
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
        """Return whether magnitudes are so far above earlier ones that most values would saturate."""
        return self.largest is None or len(largest) != len(self.largest) or bool((largest > _SURPRISE * self.largest).any())

    def seen(self, largest: Tensor) -> None:
        """Update the largest magnitudes with those of this step."""
        known = self.largest
        self.largest = largest if known is None or len(known) != len(largest) else largest.maximum(_LASTING * known)

    def lanes_for(self, codec: SteeredCodec, shape: Sequence[int]) -> dict[str, Lane]:
        """Return one lane for each kind of setting that a tensor of this shape may have."""
        for name in codec.kinds_of(shape):
            self.lanes.setdefault(name, Lane.new(codec, KINDS[name].mode))
        return self.lanes

    def state_dict(self) -> dict[str, Any]:
        """Implement :class:`~actcodec.policies.recurring.Slot`."""
        return super().state_dict() | {"lanes": {name: lane.state_dict() for name, lane in self.lanes.items()}}

    def load_state_dict(self, state: Mapping[str, Any], reader_of: Callable[[Mapping[str, Any]], Any]) -> None:
        """Implement :class:`~actcodec.policies.recurring.Slot`."""
        super().load_state_dict(state, reader_of)
        self.lanes = {name: Lane(**one) for name, one in state["lanes"].items()}


class _SteeredSlotCodec(SlotCodec[SteeredSlot, SteeredCodec]):
    """Compress with the registers as set, and measure the outcome of every setting in measuring steps."""

    def __init__(self, slot: SteeredSlot, codec: SteeredCodec, step: int, variance_growth: float, *, measures: bool) -> None:
        super().__init__(slot, codec)
        self._step, self._variance_growth, self._measures = step, variance_growth, measures

    def compress(self, x: Tensor) -> Packed:
        """Implement :class:`Codec`."""
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
        # Errors are proportional to a channel's largest magnitude, as quantiser steps are.
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
        """Return error over allowed error by reconstruction point; root mean square over channels if bounds are by channel."""
        found = {}
        for point in self._codec.points_of(packed.header.mode):
            how = replace(packed.header.how, point=point) if isinstance(packed.header.how, ShiftCoding) else packed.header.how
            restored = self._codec.decompress(replace(packed, header=replace(packed.header, how=how)))
            squares = (restored.double() - x.detach().double()).square_()
            by_scale = squares.view(1, 1, -1) if len(allowed) == 1 else by_channel(squares, scale_view(x.shape))
            found[point] = rms(by_scale.mean((0, 2)).sqrt_().cpu() / allowed)
        return found


def rms(numbers: Tensor) -> float:
    """Return the root mean square."""
    return float(numbers.square().mean().sqrt())


class SteeredPolicy(ErrorBoundPolicy):
    """Rules whose codecs of type :class:`SteeredCodec` are steered; see the module. One object serves one model.

    Parameters
    ----------
    rules, options, interval, window, codec_factory
        As in :class:`ErrorBoundPolicy`. ``options.independent`` is not checked against the codec: stochastic rounding has
        independent errors, the shift quantiser has not.
    settling
        Number of steps after each listening step in which errors are measured too, 0 or more.
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
        if not is_whole(settling, 0):
            raise UserError(f"settling = {settling!r} is not allowed: use 0 or more steps")
        self.settling = settling
        super().__init__(rules, options, interval, window, codec_factory, SteeredSlot)

    def slot_codec(self, slot: BoundSlot, codec: Codec, step: int) -> _SteeredSlotCodec:
        """Implement :class:`ErrorBoundPolicy`."""
        assert isinstance(slot, SteeredSlot), "made by this policy"
        assert isinstance(codec, SteeredCodec), "others stay as they are"
        measures = (step - 1) % self.interval <= self.settling
        return _SteeredSlotCodec(slot, codec, step, self.options.variance_growth, measures=measures)

    @property
    def layers(self) -> Sequence[SteeredLayer]:
        """Implement :class:`ErrorBoundPolicy`."""
        return [self._layer(slot) for slot in self._slots.of_step(self._step)]

    def _layer(self, slot: BoundSlot) -> SteeredLayer:
        assert isinstance(slot, SteeredSlot), "made by this policy"
        return SteeredLayer(
            **vars(super()._layer(slot)), setting=slot.setting, used=slot.used, measured=slot.measured_at == slot.step
        )
