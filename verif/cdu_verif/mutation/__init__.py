"""Faults put into the delivered Verilog, to see whether the benches find them."""
