"""Policy that chooses codecs by the gradient error that each causes."""
