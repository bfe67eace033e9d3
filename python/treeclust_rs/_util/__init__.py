"""Floor 1: words for numbers and names, threads, progress, checks, fields of model files."""
