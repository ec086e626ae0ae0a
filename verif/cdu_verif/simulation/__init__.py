"""Simulators, and the ends of a unit's ports in a simulation."""
