"""The generated Verilog of a whole unit, compiled into a shared library and driven in batches from Python."""
