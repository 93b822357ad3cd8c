"""One head of attention over marked tokens, learned in three steps (engram.learning.planted_steps)."""

from typing import Literal

from engram.values import Value


class OneHead(Value, name="models.one_head.OneHead"):
    """Its width is what a Search looks for: the least at which `label`s are right, or the `mark` is attended to."""

    asked: Literal["label", "mark"] = "label"
