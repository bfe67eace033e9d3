"""Model files with random damage: each loads something that works or raises ValueError."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from treeclust_rs._util.model_json import check_keys, dumps, loads
from treeclust_rs.export import tree_from_dict, tree_to_dict


def save(tree):
    return dumps({"tree": tree_to_dict(tree)})


def load(text):
    payload = check_keys(loads(text), ["tree"], "The model file", ["schema_version"])
    return tree_from_dict(payload["tree"])


def mutate(text, rng):
    """Change a model file in one to three places: characters, tokens or the structure."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.random()
        if kind < 0.3:
            place = rng.randrange(len(text))
            new = rng.choice(("", '"', "{", "]", ",", "0", "-", "e9", ".", "\\u0000", "é", "null"))
            text = text[:place] + new + text[place + rng.choice((0, 1, 1, 5)) :]
        elif kind < 0.6:
            tokens = list(re.finditer(r"-?\d[\d.e+-]*|null|\"[^\"]*\"|[\[\]{}:,]", text))
            token = rng.choice(tokens) if tokens else re.match("", text)
            text = text[: token.start()] + rng.choice(TOKENS) + text[token.end() :]
        else:
            try:
                payload = json.loads(text)
            except (ValueError, RecursionError):
                continue
            change_structure(payload, rng)
            text = json.dumps(payload)
        if not text:
            return " "
    return text


TOKENS = (
    *("0", "1", "-1", "2", "7", "-2", "0.5", "1e999", "-1e999", "NaN", "Infinity", "true", "null"),
    *("9" * 30, "9" * 6000, "9223372036854775808", "1e308", "5e-324", '"x"', '""', "[]", "{}"),
    *("[1]", "[[[[]]]]", "[" * 5000, '"\\ud800"', '"__class__"', '{"a": {}}', "", "1.0", "-0"),
)
VALUES = (
    *(0, 1, -1, 2, -2, 3, 7, 0.5, -2.0, 1e308, 2**31, 2**63, 10**30, True, False, None, "", "x"),
    *([], {}, [1], [[1]], {"a": 1}, [None] * 7, list(range(7)), [0] * 7, [0.5] * 7),
)


def change_structure(payload, rng):
    """Replace, delete or insert something, or nudge a number, at a random place."""
    node = payload
    if isinstance(payload, dict) and isinstance(payload.get("tree"), dict) and rng.random() < 0.8:
        node = payload["tree"]
    while True:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not places:
            return
        place = rng.choice(places)
        if isinstance(node[place], (dict, list)) and node[place] and rng.random() < 0.85:
            node = node[place]
            continue
        action = rng.random()
        if action < 0.4 and type(node[place]) in (int, float):
            node[place] = rng.choice((node[place] + 1, node[place] * 0.75, node[place] - 1e-9))
        elif action < 0.65:
            node[place] = rng.choice(VALUES)
        elif action < 0.8:
            del node[place]
        elif isinstance(node, list):
            node.insert(place, rng.choice(VALUES))
        else:
            node[rng.choice(("extra", "kind", "classes", place + "_"))] = rng.choice(VALUES)
        return


def arrays_of(payload):
    """Return the part of a model file that holds its arrays: a tree, bins or means."""
    return next(payload[part] for part in ("tree", "bins", "means") if part in payload)


def move_entries(text, rng):
    """Copy one to three entries of the arrays of a model elsewhere, or nudge them."""
    payload = json.loads(text)
    arrays = arrays_of(payload)
    names = [name for name, content in arrays.items() if isinstance(content, list) and content]
    for _ in range(rng.choice((1, 1, 2, 3))):
        array = arrays[rng.choice(names)]
        new = rng.choice(array)
        if type(new) in (int, float):
            new += rng.choice((0, 0, 1, -1))
        array[rng.randrange(len(array))] = new
    return json.dumps(payload)


def rearrange(text, rng):
    """Cut a file off, repeat a key or a list, nest deeply, shuffle nodes or change a parameter."""
    payload = json.loads(text)
    arrays = arrays_of(payload)
    action = rng.randrange(7)
    if action == 0:
        return text[: rng.randrange(len(text))]
    if action == 1:
        member = rng.choice(list(re.finditer(r'"\w+": [^\[\]{},]+,', text)))
        return text[: member.start()] + member[0] + text[member.start() :]
    if action == 2:
        place = rng.choice([match.start() for match in re.finditer(r": ", text)]) + 2
        return text[:place] + rng.choice("[{") * rng.choice((10, 500, 100_000)) + text[place:]
    if action == 3:
        name = rng.choice([name for name, content in arrays.items() if isinstance(content, list)])
        arrays[name] *= rng.choice((0, 2, 10_000))
    elif action == 4:
        # The same nodes in another order, or some of their entries only.
        n_nodes = len(arrays[next(name for name in reversed(arrays) if arrays[name])])
        order = rng.sample(range(n_nodes), n_nodes)
        for name, content in arrays.items():
            if isinstance(content, list) and len(content) == n_nodes and rng.random() < 0.9:
                arrays[name] = [content[node] for node in order]
    else:
        section = payload[rng.choice(("params", "params", "fitted"))]
        name = rng.choice(list(section))
        section[name] = rng.choice((*VALUES, rng.choice(list(section.values()))))
    return json.dumps(payload)


@dataclass
class Mutants:
    """What loads among mutated copies of some files; the rest must raise ValueError."""

    sources: Sequence[str]
    seed: int = 1
    changes: Sequence[Callable[[str, Random], str]] = (mutate,)  # taken in turn
    load: Callable[[str], Any] = load
    n_loaded: int = 0
    longest_message: int = 0

    def first(self, n: int) -> Iterator[tuple[int, str, Any]]:
        """Yield the number, the source and the content of each of the first `n` that loads."""
        rng = Random(self.seed)
        for number in range(n):
            source = self.sources[number % len(self.sources)]
            change = self.changes[number // len(self.sources) % len(self.changes)]
            try:
                content = self.load(change(source, rng))
            except ValueError as error:
                self.longest_message = max(self.longest_message, len(str(error)))
                continue
            self.n_loaded += 1
            yield number, source, content
