"""Pictures of plans and of released values, made from records alone, static (Matplotlib) or in a browser."""

from jaxgeodp.pictures.colors import color_of
from jaxgeodp.pictures.description import page_of_description
from jaxgeodp.pictures.drawn import draw_record, picture_of
from jaxgeodp.pictures.page import page_of
from jaxgeodp.pictures.plan import draw_plan, picture_of_plan

__all__ = ["color_of", "draw_plan", "draw_record", "page_of", "page_of_description", "picture_of", "picture_of_plan"]
