"""The page that labels in a browser, with all shipped models, as a file of the site.

It is made at each build, `label.html` beside the pages, and nothing of it is committed.
"""

from __future__ import annotations

from pathlib import Path

NAME = "label.html"


def write_browser_page(app, error) -> None:
    """Write the page where pages of HTML were built."""
    if error is not None or app.builder.format != "html":
        return
    from optirank.model import load
    from optirank.model.file import SHIPPED
    from optirank.web import page

    models = [load(path) for path in sorted(SHIPPED.glob("*.optirank"))]
    (Path(app.outdir) / NAME).write_text(page(models, h5ad=True), encoding="utf-8")


def setup(app):
    """Connect to the end of a build."""
    app.connect("build-finished", write_browser_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
