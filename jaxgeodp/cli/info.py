"""``jaxgeodp info``: what a report of a fault should say."""

import os
import platform

import jax
import jaxlib.version
import typer

from jaxgeodp._version import __version__


def info() -> None:
    """Print versions and the devices that JAX sees."""
    devices = ", ".join(f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices())
    typer.echo(f"jaxgeodp {__version__}")
    typer.echo(f"python {platform.python_version()}, jax {jax.__version__}, jaxlib {jaxlib.version.__version__}")
    typer.echo(f"devices: {devices}; {os.cpu_count()} CPU cores")
