"""The published ExKMC in an environment of its own, driven through pipes.

`pip install ExKMC` fails on current Pythons: its sdist needs numpy before it can say so, and holds
a C file that Cython 0.29 made in 2020, without the `.pyx` that was made from. Here pip fetches the
sdist and its own `setup.py build_ext` builds it: with `--cython` where the `.pyx` is there (a
checkout of its repository, named by the variable EXKMC_SOURCE), else from the C file with
`exkmc_shim.h` in front, which replaces the glue that current interpreters and numpy do not accept.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from peer_process import HERE, PEERS, PeerError, PeerProcess, run

HOME = PEERS / "exkmc"
REQUIREMENT = "ExKMC==0.0.3"
_IN_ITS_ENVIRONMENT = ("numpy", "scikit-learn", "pandas", "cython", "setuptools", "wheel")


class ExkmcPeer(PeerProcess):
    """A running process that fits ExKMC trees and says how long they took."""

    def __init__(self) -> None:
        self.how = build()
        super().__init__(
            HOME / "env" / "bin" / "python", "exkmc_worker.py", PYTHONPATH=str(HOME / "site")
        )


def build() -> str:
    """Make the environment, unless it is there; say how it was built."""
    stamp = HOME / "built.json"
    source = os.environ.get("EXKMC_SOURCE")
    wanted = {"source": source or REQUIREMENT, "python": sys.version}
    if stamp.exists():
        built = json.loads(stamp.read_text())
        if {key: built[key] for key in wanted} == wanted:
            return str(built["how"])
    if source and not Path(source).is_dir():
        raise PeerError(f"EXKMC_SOURCE names no folder: {source}")
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    run(sys.executable, "-m", "venv", HOME / "env")
    python = HOME / "env" / "bin" / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "install", *_IN_ITS_ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch:
        if source:
            folder = Path(scratch) / "checkout"
            shutil.copytree(source, folder)
        else:
            download = ("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:")
            run(*pip, *download, "--dest", scratch, REQUIREMENT)
            archive = next(Path(scratch).glob("*.tar.gz"))
            shutil.unpack_archive(archive, scratch, filter="data")
            folder = archive.with_name(archive.name.removesuffix(".tar.gz"))
        how = _build_extension(python, folder)
        shutil.copytree(folder / "ExKMC", HOME / "site" / "ExKMC", dirs_exist_ok=True)
    versions = run(
        python, "-c", "import platform, numpy; print(platform.python_version(), numpy.__version__)"
    ).split()
    origin = "a checkout of its repository" if source else REQUIREMENT
    how = f"{origin}, {how}, Python {versions[0]}, numpy {versions[1]}"
    stamp.write_text(json.dumps({**wanted, "how": how}))
    return how


def _build_extension(python: Path, folder: Path) -> str:
    """Compile its one extension module into HOME/site."""
    build = (python, "setup.py", "build_ext", "--build-lib", HOME / "site")
    if (folder / "ExKMC" / "splitters" / "cut_finder.pyx").exists():
        run(*build, "--cython", cwd=folder)
        return "built from its .pyx by current Cython"
    flags = f"-I{HERE} -include exkmc_shim.h -w"
    run(*build, cwd=folder, environment={"CFLAGS": flags})
    return "built from the C file in its sdist (the .pyx, by current Cython, ran 5-14 % faster)"


if __name__ == "__main__":
    print(build())
