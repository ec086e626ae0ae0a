"""Files delivered for a generated unit: Verilog, its manifest and waivers; and the blocks by name."""
