"""What the import of the package loads, and what waits for its first use."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import treeclust_rs as tc


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


def test_without_the_core_the_import_says_how_to_build_it(tmp_path):
    package = Path(tc.__file__).parent
    shutil.copytree(package, tmp_path / "treeclust_rs", ignore=shutil.ignore_patterns("_core.*"))
    run = subprocess.run(
        [sys.executable, "-P", "-c", "import treeclust_rs"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "core of treeclust_rs is not built: run `make build` or `maturin develop`." in run.stderr


def test_dir_lists_what_is_public():
    names = dir(tc)
    assert set(tc.__all__) | {"selection", "metrics", "__version__"} <= set(names)
    assert not {"Any", "import_module"} & set(names)
