"""What the server logs: one line for what a stranger does wrong, and few lines a minute, however often it is done."""

import logging
from collections import Counter
from copy import deepcopy
from typing import Any

from uvicorn.config import LOGGING_CONFIG

MOST_LINES = 10  # of one kind, a minute
FAULT = "%s: %s; the connection was closed"  # who, and what was wrong
FAULTS_OF_CLIENTS = (FAULT, "Invalid UTF-8 sequence received from client.", "Invalid HTTP request received.")


class FewLines(logging.Filter):
    """Lets the first lines of each kind pass, and counts the others until `tell` says how many there were."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg in FAULTS_OF_CLIENTS:
            record.exc_info = record.exc_text = None  # where our code noticed it helps nobody
        kind = f"{record.name} {str(record.msg).partition(chr(10))[0]}"
        self._seen[kind] += 1
        return self._seen[kind] <= MOST_LINES

    def tell(self) -> None:
        """Once a minute: how many lines were left out; then a new minute begins."""
        left_out = sum(max(0, n - MOST_LINES) for n in self._seen.values())
        self._seen.clear()
        if left_out:
            logging.getLogger("uvicorn.error").warning("%d more lines like these were left out", left_out)


def log_config(few: FewLines) -> dict[str, Any]:
    """The server's own, with the filter; what asyncio says of connections goes the same way."""
    config = deepcopy(LOGGING_CONFIG)
    config["filters"] = {"few": {"()": lambda: few}}
    config["handlers"]["default"]["filters"] = ["few"]
    config["loggers"]["asyncio"] = {"handlers": ["default"], "level": "WARNING", "propagate": False}
    return config
