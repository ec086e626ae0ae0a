"""Golden model: exact integer functions on torch tensors that define the results of every block of the unit.

Each hardware block has one module of its name; :mod:`~actcodec.golden.bitstream` joins the parts to bytes. All functions are
vectorised, stateless, and give the same integers on every device.
"""
