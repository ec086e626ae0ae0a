"""Methods of others with which this project compares: Gist, cDMA+, vDNN, bfloat16, 8 bits by row."""
