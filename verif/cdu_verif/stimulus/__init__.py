"""Values, streams and jobs that units are tried with."""
