"""Cost of offloading activations in a training step: a discrete-event model of GPU, DMA, CDUs and link.

``cdu offload`` is its command; docs/user/offload.md describes the model, its assumptions and the source of every number.
Units everywhere: seconds, bytes, floating-point operations, and these per second.
"""
