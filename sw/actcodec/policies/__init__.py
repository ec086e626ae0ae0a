"""Policies, which choose the codec of each saved tensor: the papers' policies, bounds and budgets."""
