"""What the import of the package loads, and what waits for its first use."""

import subprocess
import sys


def test_k_means_is_imported_by_the_first_fit_that_runs_it():
    # It takes a tenth of the import's time; most uses predict, or bring a reference.
    code = (
        "import sys, treeclust_rs as tc\n"
        "assert 'sklearn.cluster' not in sys.modules\n"
        "X = [[0.0], [1.0], [8.0], [9.0]]\n"
        "tc.ExKMC(reference=[0, 0, 1, 1]).fit(X)\n"
        "assert 'sklearn.cluster' not in sys.modules\n"
        "for method in (tc.ExKMC(2), tc.KernelKMeans(2, kernel='linear')):\n"
        "    assert method.fit(X).n_clusters_ == 2\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
