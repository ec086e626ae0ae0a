"""Cost of a unit on a standard-cell library: synthesis, static timing, reports. Depends on the hardware packages only."""
