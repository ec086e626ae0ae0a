"""Gate-level simulation, and the power that follows from its activity."""
