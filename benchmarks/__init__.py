"""Benchmarks, run from the project's folder: ``python -m benchmarks.FOLDER.NAME``."""
