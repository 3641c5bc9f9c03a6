"""Formulas as MathML, which browsers draw by themselves: the pages load nothing from elsewhere."""

from __future__ import annotations

from docutils.utils.math import latex2mathml


def _inline(writer, node) -> None:
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    _skip()


def _block(writer, node) -> None:
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="formula">{formula}</div>')
    _skip()


def _skip() -> None:
    from docutils.nodes import SkipNode

    raise SkipNode


def setup(app) -> dict:
    """Tell Sphinx how formulas are written."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
