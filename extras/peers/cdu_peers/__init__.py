"""Other designs beside ours."""
