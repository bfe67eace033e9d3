"""Floor 5: what estimators share: rows of a fit, saving, leaf sums, truncation."""
