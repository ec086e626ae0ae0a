"""What a unit costs on a standard-cell library: synthesis, static timing, reports. Sees the hardware packages only."""
