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
    payload = check_keys(loads(text), ["tree"], "The model file")
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


def move_entries(text, rng):
    """Copy one to three entries of the arrays of a tree to other nodes, or nudge them."""
    payload = json.loads(text)
    names = [name for name, content in payload["tree"].items() if isinstance(content, list)]
    for _ in range(rng.choice((1, 1, 2, 3))):
        array = payload["tree"][rng.choice(names)]
        new = rng.choice(array)
        if type(new) in (int, float):
            new += rng.choice((0, 0, 1, -1))
        array[rng.randrange(len(array))] = new
    return json.dumps(payload)


def model_mutants(path, models, load):
    """Return the mutants of the files of fitted models, written to and loaded from one path."""
    sources = []
    for model in models:
        model.save(path)
        sources.append(path.read_text("utf-8"))

    def load_text(text):
        path.write_text(text, "utf-8", errors="surrogatepass")
        return load(path)

    return Mutants(sources, load=load_text)


@dataclass
class Mutants:
    """What loads among mutated copies of some files; the rest must raise ValueError."""

    sources: Sequence[str]
    seed: int = 1
    moves: bool = False  # every other copy by `move_entries`
    load: Callable[[str], Any] = load
    n_loaded: int = 0
    longest_message: int = 0

    def first(self, n: int) -> Iterator[tuple[int, str, Any]]:
        """Yield the number, the source and the content of each of the first `n` that loads."""
        rng = Random(self.seed)
        for number in range(n):
            source = self.sources[number % len(self.sources)]
            change = move_entries if self.moves and number % 2 == 0 else mutate
            try:
                content = self.load(change(source, rng))
            except ValueError as error:
                self.longest_message = max(self.longest_message, len(str(error)))
                continue
            self.n_loaded += 1
            yield number, source, content
