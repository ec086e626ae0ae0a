"""A DMA engine beside the unit: descriptors, tensors and payloads in memory behind one AXI4 port."""
