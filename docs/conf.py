"""The site: every document of the project, and what is read off the code, for a browser without a network.

The root of the project is the source, so that links between documents are the same here and on a code host. Formulas
become MathML while the site is built: no script and no font has to be fetched.
"""

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

project, author = "Engram", "The Engram authors"
copyright = f"2026, {author}"
release = version = installed("engram")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "site_pages"]
include_patterns = ["docs/**", "README.md", "LEDGER.md", "NOTATION.md", "LOG.md", "CHANGELOG.md", "CONTRIBUTING.md"]
root_doc = "docs/index"
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Engram {release}"
html_show_sourcelink = False
html_show_search_summary = False  # a page opened from a folder may fetch none
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}
autodoc_typehints = "none"  # docstrings say what fields are; types of a Value are full of limits
autodoc_member_order = "bysource"


# what docutils does not know: signs of HTML, dots, and sizes of brackets, which browsers choose by themselves
OTHERS = {r"\lt": "<", r"\gt": ">", r"\dots": r"\ldots"}
COMMAND = re.compile(r"\\(?:lt|gt|dots|[bB]igg?[lmr]?)(?![a-zA-Z])")


def mathml(text: str, as_block: bool) -> str:
    return tex2mathml(COMMAND.sub(lambda found: OTHERS.get(found[0], ""), text), as_block=as_block)


def inline(translator: Any, node: Any) -> None:
    translator.body.append(mathml(node.astext(), as_block=False))
    raise SkipNode


def block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="math">{mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
