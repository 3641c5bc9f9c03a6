"""How Sphinx makes the documentation: ``make docs``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import optirank

project = "optirank"
author = "The optirank developers"
copyright = "2026, the optirank developers"
version = release = optirank.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "browser_page",
    "command_tables",
    "mathml",
    "notebooks",
    "themed_figures",
]
exclude_patterns = ["_build", "_ext"]
nitpicky = True
smartquotes_action = "D"  # dashes; quotes stay, since what is quoted may be typed
nitpick_ignore = [
    ("py:exc", "DeviceError"),  # not part of the public names
]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # types are in the docstrings, where they say more
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]

html_theme = "furo"
html_title = "optirank"
html_static_path = ["_static"]
html_css_files = ["optirank.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
