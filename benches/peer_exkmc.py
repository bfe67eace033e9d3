"""The published ExKMC in an environment of its own, driven through pipes.

`pip install ExKMC` fails on current Pythons: its sdist needs numpy before it can say so, and holds
a C file that Cython 0.29 made in 2020, without the `.pyx` that was made from. Here pip fetches the
sdist and its own `setup.py build_ext` builds it from the C file, with `exkmc_shim.h` in front: that
replaces the glue that current interpreters and numpy do not accept. With a checkout of its
repository, whose folder the variable EXKMC_SOURCE names, current Cython builds it from the `.pyx`
too, both fit the same trees in turn, and the faster is the peer.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from peer_process import HERE, PEERS, PeerError, PeerProcess, run

HOME = PEERS / "exkmc"
REQUIREMENT = "ExKMC==0.0.3"
SOURCE = "EXKMC_SOURCE"
_IN_ITS_ENVIRONMENT = ("numpy", "scikit-learn", "pandas", "cython", "setuptools", "wheel")
_PYX = Path("ExKMC", "splitters", "cut_finder.pyx")
ROUNDS = 5


class ExkmcPeer(PeerProcess):
    """A running process that fits ExKMC trees and says how long they took."""

    def __init__(self) -> None:
        built = build()
        self.how = built["how"]
        super().__init__(PYTHON, "exkmc_worker.py", PYTHONPATH=str(HOME / built["site"]))


PYTHON = HOME / "env" / "bin" / "python"


def build() -> dict[str, str]:
    """Make the environment, unless it is there; return what to import and how it was built."""
    stamp = HOME / "built.json"
    source = os.environ.get(SOURCE, "")
    wanted = {"source": source, "requirement": REQUIREMENT, "python": sys.version}
    if stamp.exists():
        built: dict[str, str] = json.loads(stamp.read_text())
        if {key: built.get(key) for key in wanted} == wanted:
            return built
    if source and not (Path(source) / _PYX).exists():
        raise PeerError(f"{SOURCE} names no checkout of ExKMC: there is no {_PYX} in {source}")
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    run(sys.executable, "-m", "venv", HOME / "env")
    pip = (PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "install", *_IN_ITS_ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch:
        download = ("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:")
        run(*pip, *download, "--dest", scratch, REQUIREMENT)
        archive = next(Path(scratch).glob("*.tar.gz"))
        shutil.unpack_archive(archive, scratch, filter="data")
        folder = archive.with_name(archive.name.removesuffix(".tar.gz"))
        flags = {"CFLAGS": f"-I{HERE} -include exkmc_shim.h -w"}
        _build_site("site-c", folder, environment=flags)
        if source:
            shutil.copy(Path(source) / _PYX, folder / _PYX)
            _build_site("site-pyx", folder, "--cython")
    site, how = (
        _faster() if source else ("site-c", f"built from the C file in its sdist ({_NO_PYX})")
    )
    versions = run(
        PYTHON,
        "-c",
        "import platform, numpy, Cython; "
        "print(platform.python_version(), numpy.__version__, Cython.__version__)",
    ).split()
    how = "{}, {}, Python {}, numpy {}, Cython {}".format(REQUIREMENT, how, *versions)
    built = {**wanted, "site": site, "how": how}
    stamp.write_text(json.dumps(built))
    return built


_NO_PYX = f"its .pyx was not tried: {SOURCE} named no checkout"


def _build_site(
    site: str, folder: Path, *options: str, environment: dict[str, str] | None = None
) -> None:
    """Compile its one extension module, and put the package beside it."""
    command = (PYTHON, "setup.py", "build_ext", "--force", "--build-lib", HOME / site)
    run(*command, *options, cwd=folder, environment=environment)
    shutil.copytree(folder / "ExKMC", HOME / site / "ExKMC", dirs_exist_ok=True)


def _faster() -> tuple[str, str]:
    """Fit the same trees with both builds in turn; return the faster one and by how much."""
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=3.0, size=(10, 20))
    X = centers[rng.integers(10, size=30_000)] + rng.normal(size=(30_000, 20))
    times: dict[str, list[float]] = {"site-c": [], "site-pyx": []}
    with tempfile.TemporaryDirectory() as scratch:
        files = {"data": f"{scratch}/data.npy", "centers": f"{scratch}/centers.npy"}
        np.save(files["data"], X)
        np.save(files["centers"], centers)
        peers = {
            site: PeerProcess(PYTHON, "exkmc_worker.py", PYTHONPATH=str(HOME / site))
            for site in times
        }
        for peer in peers.values():
            peer.ask("load", **files)
        for _ in range(ROUNDS):
            for site, peer in peers.items():
                times[site].append(peer.ask("fit", max_leaves=20, empty=False)["seconds"])
        for peer in peers.values():
            peer.close()
    c, pyx = (statistics.median(done) for done in times.values())
    if pyx < c:
        return "site-pyx", f"built from its .pyx, in {pyx / c:.2f} of the time of its C file"
    return "site-c", f"built from the C file in its sdist, in {c / pyx:.2f} of the time of its .pyx"


if __name__ == "__main__":
    print(build()["how"])
