"""Studies of training with compressed activations: runs, reports, data sets, networks."""
