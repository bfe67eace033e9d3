"""Hook of mkdocs: the reference, written from the docstrings.

A line ``::: treeclust_rs.IMM`` becomes the signature and the docstring of that name. After
a colon the line may name methods to show below a class: ``::: treeclust_rs.Kauri: objective``.
Docstrings are read from the imported package, where the parts that they share are filled in.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

LISTS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "See Also")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the lines that name what to show."""
    return re.sub(r"^::: (treeclust_rs[\w.]+)(?:: (.*))?$", reference, markdown, flags=re.MULTILINE)


def reference(line: re.Match[str]) -> str:
    """Return the text for one line."""
    module, _, name = line[1].rpartition(".")
    thing = getattr(import_module(module), name)
    title = name if "._" in line[1] else line[1]  # of a class that calls return
    parts = [f"## {name} {{ #{line[1]} }}", described(title, thing)]
    for member in filter(None, (line[2] or "").split(", ")):
        attribute = inspect.getattr_static(thing, member)
        if isinstance(attribute, property):
            attribute = attribute.fget
        parts += [
            f"### {name}.{member} {{ #{line[1]}.{member} }}",
            described(
                member, attribute if inspect.isfunction(attribute) else getattr(thing, member)
            ),
        ]
    return "\n\n".join(parts)


def described(title: str, thing: Any) -> str:
    """Return signature and docstring of a class or a function."""
    docstring = inspect.getdoc(thing)
    assert docstring, f"{title} has no docstring"
    sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.MULTILINE)
    parts = [f"```python\n{title}{signature(thing)}\n```", plain(sections[0])]
    for head, body in zip(sections[1::2], sections[2::2], strict=True):
        parts.append(f"**{head}**")
        if head == "Examples":
            parts.append(f"```pycon\n{body.strip()}\n```")
        else:
            parts.append(entries(body) if head in LISTS else plain(body))
    return "\n\n".join(parts)


def signature(thing: Any) -> str:
    """Return the parameters with their defaults, one a line if there are many."""
    found = inspect.signature(thing)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
    ]
    text = str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    return (
        text
        if len(text) < 70
        else text.replace("(", "(\n    ", 1).replace(", ", ",\n    ")[:-1] + "\n)"
    )


def entries(body: str) -> str:
    """Return the entries "name : type" of a section as a list of definitions."""
    found = []
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, rest = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        term = f"`{names}`" + (f" : {plain(kind)}" if kind else "")
        found.append(
            f"{term}\n:   {plain(inspect.cleandoc(rest) or '—').replace(chr(10), chr(10) + '    ')}"
        )
    return "\n\n".join(found)


def plain(text: str) -> str:
    """Return text in which only the quotes of code are markup."""
    pieces = re.split(r"(``.+?``|`[^`]+`)", text.strip("\n"), flags=re.DOTALL)
    pieces[::2] = [re.sub(r"([*_<>\[\]|])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)
