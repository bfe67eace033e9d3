"""Hook of mkdocs: pages and pictures of the repository that the site shows where they are.

They stay where readers of the repository look for them; here they get a place on the site, and
their links to each other are turned into links of the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs" / "site"
# Pages of the repository, by their place on the site.
PAGES = {
    "readme.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "changelog.md": "CHANGELOG.md",
    "model-format.md": "docs/model-format.md",
    "results.md": "benches/RESULTS.md",
}


def sources() -> dict[str, Path]:
    """Return the files of the repository by their place on the site."""
    found = {place: ROOT / name for place, name in PAGES.items()}
    pictures = sorted((ROOT / "docs").glob("*.png"))
    return found | {path.name: path for path in [*pictures, ROOT / "docs" / "model.schema.json"]}


def on_files(files: Files, *, config: Any) -> Files:
    """Add the repository's pages and pictures to those of the site."""
    for place, path in sources().items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    source = sources().get(page.file.src_uri)
    if source is None:
        return markdown
    places = {path: place for place, path in sources().items()}
    places |= {path: path.relative_to(SITE).as_posix() for path in SITE.rglob("*.md")}

    def link(match: re.Match[str]) -> str:
        name, anchor = match[1], match[2] or ""
        return f"]({places[(source.parent / name).resolve()]}{anchor})"

    return re.sub(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)", link, markdown)
