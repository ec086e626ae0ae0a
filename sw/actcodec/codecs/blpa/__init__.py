"""BLPA (NeurIPS 2019): approximate activations of layers, in floats and in codes."""
