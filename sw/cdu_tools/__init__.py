"""What every package needs and no paper names: files, errors, caches, compilers, Yosys, Verilator."""
