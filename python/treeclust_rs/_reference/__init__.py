"""Floor 3: what a tree explains: labels, centers, estimators, and the clusterings made here."""
