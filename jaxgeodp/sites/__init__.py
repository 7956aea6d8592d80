"""Sites that do not show each other their sums: masked states, of which only all together tell anything.

Each site prepares its records (`Mechanism.prepare`), masks the state with secrets that it shares with each other site
(`masked`), and hands it to whoever combines (`combined`): the masks cancel in the sum of all, and in no other. What is
released of it is as if all records had been in one place. Threats, and what is proven: docs/scale.md#several-sites.
"""

from jaxgeodp.sites.keys import PublicSite, SiteKey
from jaxgeodp.sites.masked import MaskedState, check_sites, combined, masked, session_of

__all__ = ["MaskedState", "PublicSite", "SiteKey", "check_sites", "combined", "masked", "session_of"]
