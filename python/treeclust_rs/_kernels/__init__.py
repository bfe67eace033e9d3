"""Floor 4: kernels, Gram matrices, low rank, sums over clusters, kernel k-means."""
