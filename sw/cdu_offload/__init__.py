"""What offloading activations costs a training step: a discrete-event model of GPU, DMA, CDUs and link.

``cdu offload`` is its command; docs/user/offload.md says what is modelled, what is assumed and where every number comes from.
Units everywhere: seconds, bytes, floating-point operations, and these per second.
"""
