"""What a generated unit is delivered as: Verilog, its manifest, waivers, the blocks by their names."""
