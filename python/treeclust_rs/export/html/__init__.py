"""The tree as one HTML file to look through in a browser, offline."""

from .page import to_html

__all__ = ["to_html"]
