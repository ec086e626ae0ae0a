"""Which saved tensor gets which codec: the papers' policies, bounds and budgets."""
