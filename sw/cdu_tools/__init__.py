"""Tools that every package needs: files, errors, caches, compilers, Yosys, Verilator."""
