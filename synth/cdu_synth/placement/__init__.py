"""Netlists placed in rows of standard cells, and what the wires between them do to the clock."""
