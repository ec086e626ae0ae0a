"""Netlists placed in rows of standard cells, and the effect of the wires on the clock."""
