"""Results of a reproduction: claims with verdicts, figures, and the numbers behind them."""

import csv
import dataclasses
import io
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import matplotlib.figure
import numpy as np

from jaxgeodp._version import __version__
from jaxgeodp.experiments.generators import Generator
from jaxgeodp.experiments.replicates import run_replicates
from jaxgeodp.experiments.reproduction.settings import EmbeddedMean
from jaxgeodp.files import write_atomically
from jaxgeodp.mechanisms import EuclideanLaplace, KNGMechanism, LaplaceMechanism
from jaxgeodp.pictures.colors import ERROR_BARS, color_of
from jaxgeodp.releases.law import PointLaw

#: A mechanism of the papers.
WithEpsilon = KNGMechanism | LaplaceMechanism | EuclideanLaplace | EmbeddedMean

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be decided"


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, values) -> "Estimate":
        """Return the mean of independent values with its standard error."""
        values = np.asarray(values, float)
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(float(values.mean()), float(error))

    def __str__(self):
        return f"{self.mean:.4g} ± {2 * self.error:.1g}"

    def scaled(self, factor: float) -> "Estimate":
        """Return the estimate in other units."""
        return Estimate(self.mean * factor, self.error * abs(factor))


@dataclasses.dataclass(frozen=True)
class Claim:
    """One claim in one setting: "paper" (as they simulated), "theorem" (as they proved) or "tight" (ours)."""

    id: str
    claim: str
    setting: str
    found: str
    verdict: str
    why: str = ""


class Cell(NamedTuple):
    """A mechanism in one setting at one size."""

    name: str
    setting: str
    mechanism: WithEpsilon
    data: Generator
    n: int
    replicates: int
    scale: float | None = None  #: another than the mechanism's own, as printed

    @property
    def key(self) -> tuple[str, str]:
        """Manifold and label, which name the noise stream."""
        return str(self.data.ball.manifold), f"{self.name}, {self.setting}, n={self.n}, {self.mechanism.epsilon:g}"

    def program(self):
        """Return a key shared by cells with the same compiled program."""
        return jax.tree.structure((self.law().unsized, self.data))

    def law(self) -> PointLaw:
        """Return the mechanism's law with the scale of this cell."""
        law = self.mechanism.law(self.n)
        return law if self.scale is None else dataclasses.replace(law, scale=self.scale)


@dataclasses.dataclass
class Run:
    """A reproduction in progress.

    Args:
        quick: few replicates, to see that it works; verdicts then mean little.
        seed: all numbers follow from it.
        say: called with what is being done.
    """

    quick: bool = False
    seed: int = 0
    say: Callable[[str], None] = print
    claims: list[Claim] = dataclasses.field(default_factory=list)
    figures: dict[str, matplotlib.figure.Figure] = dataclasses.field(default_factory=dict)
    numbers: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)

    def count(self, full: int) -> int:
        """Return the number of replicates: the paper's, or a thirtieth of it."""
        return max(20, full // 30) if self.quick else full

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of records."""
        return (20, 30, 40, 100) if self.quick else (20, 30, 40, 60, 80, 100, 120)

    def claim(self, *fields: str) -> None:
        """Add a `Claim`."""
        self.claims.append(Claim(*fields))

    def errors(self, cells: Iterable["Cell"]) -> list[dict[str, Any]]:
        """Return mean errors of cells over replicates; record each as a row of numbers.csv.

        Cells that need the same program follow each other in one thread; programs are compiled side by side.
        """
        known = {(row["manifold"], row["label"]): row for row in self.numbers}
        new: dict[Any, Cell] = {}
        for cell in cells:
            if cell.key not in known:
                # Two plans may ask for one cell, with different numbers of replicates: the larger serves both.
                other = new.setdefault(cell.key, cell)
                new[cell.key] = max(cell, other, key=lambda c: c.replicates)
        programs: dict[Any, list[Cell]] = {}
        for cell in new.values():
            programs.setdefault(cell.program(), []).append(cell)
        # Those with most cells take longest.
        groups = sorted(programs.values(), key=len, reverse=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            futures = [pool.submit(lambda group: [self._row(cell) for cell in group], group) for group in groups]
            rows = [row for future in futures for row in future.result()]
        known |= {(row["manifold"], row["label"]): row for row in rows}
        self.numbers.extend(known[key] for key in new)
        return [known[cell.key] for cell in cells]

    def _row(self, cell):
        manifold, label = cell.key
        self.say(f"{manifold}: {label}")
        mechanism, law, stream = cell.mechanism, cell.law(), f"{manifold}: {label}"
        errors = run_replicates(mechanism, cell.data, cell.n, self.count(cell.replicates), self.seed, stream, law=law)
        inside = errors.distance[errors.on_manifold]
        return {
            "manifold": manifold,
            "label": label,
            "mechanism": cell.name,
            "setting": cell.setting,
            "n": cell.n,
            "epsilon": float(mechanism.epsilon),
            "replicates": len(errors.euclidean),
            "scale": float(law.scale),
            "euclidean": Estimate.of(errors.euclidean),
            "distance": Estimate.of(inside) if inside.size > 1 else None,
            "square": Estimate.of(inside**2) if inside.size > 1 else None,
            "on_manifold": Estimate.of(errors.on_manifold),
        }

    def write(self, folder: pathlib.Path, name: str, seconds: float) -> None:
        """Write claims.md, claims.csv, numbers.csv, config.json and the figures."""
        folder.mkdir(parents=True, exist_ok=True)
        for title, figure in self.figures.items():
            picture = io.BytesIO()
            figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
            write_atomically(folder / f"{title}.png", picture.getvalue())
        write_atomically(folder / "claims.csv", _csv([dataclasses.asdict(claim) for claim in self.claims]))
        write_atomically(folder / "numbers.csv", _csv([_plain(row) for row in self.numbers]))
        write_atomically(folder / "claims.md", f"# Claims of {name}\n\n{self.table()}")
        config = {
            "name": name,
            "quick": self.quick,
            "seed": self.seed,
            "numbers of records": self.sizes,
            "settings": self.settings,
            "seconds": round(seconds, 1),
            "versions": {"jaxgeodp": __version__, "jax": jax.__version__},
            "devices": [str(device) for device in jax.devices()],
        }
        write_atomically(folder / "config.json", json.dumps(config, indent=1))

    def table(self) -> str:
        """Return the claims as a Markdown table."""
        lines = ["| id | claim | setting | found (± 2 SE) | verdict | why |", "|---|---|---|---|---|---|"]
        for claim in self.claims:
            lines.append("| " + " | ".join(dataclasses.astuple(claim)) + " |")
        return "\n".join(lines) + "\n"


def compare(smaller: Estimate, larger: Estimate) -> str:
    """Return the verdict on whether one mean is below another, by three standard errors of the difference."""
    gap = larger.mean - smaller.mean
    margin = 3.0 * math.hypot(smaller.error, larger.error)
    return HOLDS if gap > margin else FAILS if gap < -margin else OPEN


def within(estimate: Estimate, least: float, most: float) -> str:
    """Return the verdict on whether a mean lies between two numbers, by three standard errors."""
    low, high = estimate.mean - 3.0 * estimate.error, estimate.mean + 3.0 * estimate.error
    if least <= low and high <= most:
        return HOLDS
    return FAILS if high < least or low > most else OPEN


def by_sizes(sizes, verdicts) -> str:
    """Return one verdict for all numbers of records, or the verdict of each."""
    verdicts = list(verdicts)
    if len(set(verdicts)) == 1:
        return verdicts[0]
    parts = []
    for verdict in (HOLDS, FAILS, OPEN):
        where = [str(n) for n, found in zip(sizes, verdicts, strict=True) if found == verdict]
        if where:
            parts.append(f"{verdict}: n = {', '.join(where)}")
    return "; ".join(parts)


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """Return the ratio of two independent means with its standard error."""
    value = a.mean / b.mean
    return Estimate(value, abs(value) * math.hypot(a.error / a.mean, b.error / b.mean))


def all_of(verdicts) -> str:
    """Return the joint verdict of several."""
    verdicts = list(verdicts)
    return FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS


def line_figure(panels):
    """Return panels of mean errors against n: (title, y label, {mechanism: [(n, Estimate)]})."""
    figure = matplotlib.figure.Figure(figsize=(5.2 * len(panels), 3.9), layout="constrained")
    for axis, (title, label, lines) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels, strict=True):
        for name, points in lines.items():
            n = [x for x, _ in points]
            mean = np.array([estimate.mean for _, estimate in points])
            band = 2.0 * np.array([estimate.error for _, estimate in points])
            axis.errorbar(n, mean, band, fmt="o-", color=color_of(name), **ERROR_BARS, label=name)
        axis.set(title=title, xlabel="records n", ylabel=f"{label}\n(bars: ± 2 standard errors over replicates)")
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False, fontsize="small")
    return figure


def _csv(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _plain(row):
    plain = {}
    for key, value in row.items():
        if isinstance(value, Estimate):
            plain |= {key: value.mean, f"{key}_se": value.error}
        else:
            plain[key] = value
    return plain
