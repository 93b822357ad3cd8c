"""In a notebook things show themselves as HTML, with a picture; engram.show.notebook draws it, and is loaded then."""

from importlib import import_module


class Displayed:
    """What a notebook can show; `engram.show.notebook` has a function for each class."""

    def _repr_html_(self) -> str:
        return import_module("engram.show.notebook").html(self)
