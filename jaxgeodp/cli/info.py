"""``jaxgeodp info`` and ``jaxgeodp --version --verbose``: what a report of a fault should say."""

import importlib.metadata
import os
import pathlib
import platform

import jax
import typer

from jaxgeodp._version import __version__

# What decides about numbers and about what is drawn on the command line, in this order.
_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "numpyro", "chex", "scikit-learn", "pyarrow", "typer")


def info() -> None:
    """Print versions, the devices that JAX sees, and where compiled programs are kept."""
    try:
        devices = ", ".join(f"{device.platform}:{device.id} ({device.device_kind})" for device in jax.devices())
    # Whatever JAX meets where a driver is missing is what is to be reported.
    except Exception as error:
        devices = f"not available ({type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''})"
    typer.echo(f"jaxgeodp {__version__}")
    typer.echo(f"python {platform.python_version()}, {platform.platform()}")
    typer.echo(", ".join(f"{name} {_version(name)}" for name in _PACKAGES))
    typer.echo(f"devices: {devices}; {os.cpu_count()} CPU cores")
    folder = jax.config.values["jax_compilation_cache_dir"] or "not kept"
    typer.echo(f"compiled programs: {folder.replace(str(pathlib.Path.home()), '~')}")


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"
