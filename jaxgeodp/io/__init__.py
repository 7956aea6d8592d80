"""Records in files: what reads them, checks how they are laid out, and makes them ready; none of it is private."""

from jaxgeodp.io.findings import Finding, Findings, check
from jaxgeodp.io.records import read

__all__ = ["Finding", "Findings", "check", "read"]
