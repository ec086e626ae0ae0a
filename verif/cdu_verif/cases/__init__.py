"""Cases of the block benches: expected values from the golden functions only."""
