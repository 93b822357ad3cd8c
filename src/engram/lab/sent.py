"""What a page was sent last, so that nothing is sent twice."""

from typing import Any

from engram.lab.watched_run import Made


class Sent(dict[tuple[str, str], Any]):
    """The last of each kind that was made for a view; what is still made for an older view is booked with that one."""

    def unless(self, kind: tuple[str, str], key: Any, content: Made) -> Made | None:
        """What was made, unless it is what was sent last of this kind."""
        if self.get(kind) == key:
            return None
        self[kind] = key
        return content
