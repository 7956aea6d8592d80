"""``python -m jaxgeodp``."""

from jaxgeodp.cli import app

app()
