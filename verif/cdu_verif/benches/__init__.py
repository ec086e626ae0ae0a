"""cocotb test modules; the runner starts them on generated Verilog."""
