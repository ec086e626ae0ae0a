"""Formal proofs about the generated Verilog: stream rules, order, arithmetic, widths, progress."""
