"""Experiments of the papers: synthetic data, replicates, sweeps, and the papers' chains."""

from jaxgeodp.experiments.generators import Generator, OutlineData, PolarData, ResampledData, WishartData
from jaxgeodp.experiments.paper_chains import PAPER_CHAINS, PaperChain, paper_chain
from jaxgeodp.experiments.replicates import Errors, run_replicates
from jaxgeodp.experiments.results import SweepResults, run_sweep
from jaxgeodp.experiments.sweep import Cell, Sweep, read_sweep

__all__ = [
    "PAPER_CHAINS",
    "Cell",
    "Errors",
    "Generator",
    "OutlineData",
    "PaperChain",
    "PolarData",
    "ResampledData",
    "Sweep",
    "SweepResults",
    "WishartData",
    "paper_chain",
    "read_sweep",
    "run_replicates",
    "run_sweep",
]
