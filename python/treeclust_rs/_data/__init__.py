"""Floor 2: what users bring: frames, arrays, sparse matrices, weights and units."""
