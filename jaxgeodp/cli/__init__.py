"""Command line: ``jaxgeodp demo``, ``jaxgeodp release``, ``jaxgeodp ledger``, ``jaxgeodp info``."""

from jaxgeodp.cli.app import app, main

__all__ = ["app", "main"]
