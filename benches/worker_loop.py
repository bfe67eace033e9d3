"""The loop of a worker in an environment of its own: a request a line in, an answer a line out."""

from __future__ import annotations

import json
import sys


def answer_requests(worker: object) -> None:
    """Call the method that each request names, until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("command"))(**request)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is the answer)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
