"""Area and timing of blocks in a cell library."""
