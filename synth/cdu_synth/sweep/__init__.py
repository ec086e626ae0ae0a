"""Design-space exploration: points of a space, measured in parallel, kept, and compared.

Each measurement at a point is a :class:`~cdu_synth.sweep.task.Measure`. Area and clock are measured here; rate, and ratio and
error, come from packages with access to more than the hardware.
"""
