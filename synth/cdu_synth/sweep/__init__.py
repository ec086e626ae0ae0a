"""Design-space exploration: points of a space, measured in parallel, kept, and compared.

What is measured at a point is a :class:`~cdu_synth.sweep.task.Measure`. Area and clock are measured here; rate, and ratio and
error, come from packages that see what this one does not.
"""
