"""The golden model: what every block of the unit must compute, as exact integer functions on torch tensors.

One module per hardware block, under the block's name; :mod:`~actcodec.golden.bitstream` puts the parts together as
bytes. All functions are vectorised, free of state, and give the same integers on every device.
"""
