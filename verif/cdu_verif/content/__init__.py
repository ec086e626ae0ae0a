"""Content of cases and jobs: integers, tensors and payloads of every kind."""
