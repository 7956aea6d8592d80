"""The R code of docs/r.md, run by R where R with reticulate is installed."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from jaxgeodp import GaussianDP, Ledger, PlanarShapes, Release

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "r.md"
CHECKS = """
write.table(template, "wanted.csv", sep = ",", row.names = FALSE, col.names = FALSE)
write.table(mean_shape, "by_reticulate.csv", sep = ",", row.names = FALSE, col.names = FALSE)
stopifnot(all(eigen(mean_covariance)$values > 0), dim(mean_covariance) == c(3, 3))
stopifnot(abs(sum(mean_direction^2) - 1) < 1e-6, mean_direction[3] > 0.8)
stopifnot(dim(mean_skull) == c(5, 3), abs(sum(mean_skull^2) - 1) < 1e-6)
stopifnot(to_r(to_python(7)) == 7)
write.table(by_command, "by_command.csv", sep = ",", row.names = FALSE, col.names = FALSE)
"""


def has_r():
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", "library(reticulate)"], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_r(), reason="needs R with reticulate")
def test_landmarks_of_r_become_a_private_mean_and_come_back(tmp_path):
    script = "\n".join(re.findall(r"^```r\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)) + CHECKS
    (tmp_path / "page.R").write_text(script)
    binaries = pathlib.Path(sys.executable).parent
    paths = {"RETICULATE_PYTHON": sys.executable, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["Rscript", "page.R"], cwd=tmp_path, env=os.environ | paths, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    space = PlanarShapes(8)
    wanted, *means = (
        np.asarray(space.from_landmarks(np.loadtxt(tmp_path / f"{name}.csv", delimiter=",")))
        for name in ("wanted", "by_reticulate", "by_command")
    )
    for mean in means:
        # 300 records whose noise is .02 of their size; transposed or mixed landmarks would be .5 away and more.
        assert 0 < float(space.dist(wanted, mean)) < 0.06
    assert Release.load(tmp_path / "mean.json").guarantee == GaussianDP(1.0)
    assert Release.load(tmp_path / "released.json").guarantee == GaussianDP(1.0)
    assert Ledger(tmp_path / "budget.db").account().releases == 1
