"""Records from files: read, checked and prepared, for the command line and for Python."""

from jaxgeodp.io.charts import from_chart, to_chart
from jaxgeodp.io.findings import Finding, Findings, check
from jaxgeodp.io.records import read

__all__ = ["Finding", "Findings", "check", "from_chart", "read", "to_chart"]
