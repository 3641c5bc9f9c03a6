"""A figure that is drawn twice, for light and for dark pages.

The directive names the light one, ``figures/curve.png``; the dark one is
``figures/curve-dark.png``. Its content is the text for those who cannot see it.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from docutils import nodes
from docutils.parsers.rst import Directive


class Themed(Directive):
    """Two images, of which furo shows the one for the page's colours."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make both images."""
        light = PurePosixPath(self.arguments[0])
        dark = light.with_stem(f"{light.stem}-dark")
        alt = " ".join(self.content)
        return [
            nodes.image(uri=str(path), alt=alt, classes=[f"only-{theme}"])
            for theme, path in {"light": light, "dark": dark}.items()
        ]


def setup(app):
    """Enter the directive ``themed``."""
    app.add_directive("themed", Themed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
