"""A complete system: a RISC-V processor, memory, a unit behind its DMA engine, and a program that uses the driver."""
