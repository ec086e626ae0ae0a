"""A system that runs: a RISC-V processor, memory, a unit behind its DMA engine, a program that uses the driver."""
