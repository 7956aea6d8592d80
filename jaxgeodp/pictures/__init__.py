"""Pictures of released values, from their records alone: for Matplotlib, and to be turned by hand in a browser."""

from jaxgeodp.pictures.drawn import draw_record, picture_of
from jaxgeodp.pictures.page import page_of

__all__ = ["draw_record", "page_of", "picture_of"]
