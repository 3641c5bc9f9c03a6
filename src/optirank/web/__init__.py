"""The page that labels samples in a browser: one HTML file with a model in it."""

from optirank.web.page_file import page, write_page

__all__ = ["page", "write_page"]
