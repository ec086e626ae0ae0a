"""Coverage of the Verilog by a regression, waivers of points that cannot be reached, and sign-off of each block."""
