"""Compiled graphs: compression in the forward and the backward graph that ``torch.compile`` makes of a model."""
