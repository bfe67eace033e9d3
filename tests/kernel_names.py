"""The kernels by name, with the parameters of each test's own."""

DEFINITE = {
    name: {}
    for name in (
        *("linear", "polynomial", "rbf", "laplacian", "chi2", "additive_chi2", "cosine"),
        *("histogram_intersection", "hellinger"),
    )
}
