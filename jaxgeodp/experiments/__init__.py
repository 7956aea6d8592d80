"""What the papers ran, to be repeated and compared."""

from jaxgeodp.experiments.paper_chains import PAPER_CHAINS, PaperChain, paper_chain

__all__ = ["PAPER_CHAINS", "PaperChain", "paper_chain"]
