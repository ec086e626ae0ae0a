"""Values of float formats to integers and back, and the scales that it takes."""
