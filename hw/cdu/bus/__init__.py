"""AXI4-Lite and AXI4-Stream ends."""
