"""One CDU each way, and what deals blocks out to several and collects what they make."""
