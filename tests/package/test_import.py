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


def test_forms_of_a_tree_are_imported_by_their_first_use():
    code = (
        "import sys, treeclust_rs as tc\n"
        "forms = ('graphviz', 'html', 'narwhals', 'onnx', 'pictures', 'sklearn', 'sql')\n"
        "loaded = [form for form in forms if f'treeclust_rs.export.{form}' in sys.modules]\n"
        "assert not loaded, loaded\n"
        "assert set(tc.export.__all__) <= set(dir(tc.export))\n"
        "for name in tc.export.__all__:\n"
        "    found = getattr(tc.export, name)\n"
        "    assert name == 'SCHEMA_VERSION' or found.__name__ == name\n"
        "    assert '%(' not in str(found.__doc__)\n"
        "assert all(f'treeclust_rs.export.{form}' in sys.modules for form in forms)\n"
        "try:\n"
        "    tc.export.to_fortran\n"
        "except AttributeError as error:\n"
        "    assert 'to_fortran' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
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
