"""HTML pages made of a template: one file each, which loads nothing and runs only its own code."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from importlib import resources

from .files import replacing


def asset(package: str | None, name: str) -> str:
    """Return the text of a file that lies beside the modules of a package."""
    return (resources.files(package or "") / name).read_text(encoding="utf-8")


def content_hash(text: str) -> str:
    """Return the hash by which a page allows this style or script, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def write_page(path: str | os.PathLike[str], template: str, parts: Mapping[str, str]) -> None:
    """Write the template with its ``{{parts}}`` filled in, which are markup already.

    In one pass: what is filled in is not looked at again.
    """
    page = re.sub(r"\{\{([a-z ]+)\}\}", lambda found: parts[found[1]], template)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
