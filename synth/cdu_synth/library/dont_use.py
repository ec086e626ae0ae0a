"""Cells of the known libraries that logic is not mapped onto, although their files do not say so."""

from __future__ import annotations

#: Patterns of names by library. Cells for several power domains, probes, delay and hold cells are no ordinary logic, but the
#: smallest of them would serve as buffers. Two kinds of flip-flops come out worse than the plain one with a gate: those with an
#: enable pin (sky130hd), whose fan-out ABC does not see and so does not buffer, and the one of ASAP7 with an output that
#: is made for four times the load.
DONT_USE = {
    "sky130hd": ("*_lpflow_*", "*_probe*", "*dlybuf*", "*_dlygate*", "*_dlymetal*", "*edfx*"),
    "ihp_sg13g2": ("*_dlygate*",),
    "asap7": ("HB*", "DFFHQx4_*"),
}
