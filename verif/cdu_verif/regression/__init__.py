"""What `cdu verify` runs, and what came of it."""
