"""Floor 6: the estimators, one file a method."""
