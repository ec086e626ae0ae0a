"""Parts that know nothing of CDUs: streams, queues, multipliers, shifters."""
