"""Faces: meshes with two landmarks, as radial curves relative to a public template, and their private means.

One face: `landmarks`, `curves`. Many of them, in a private folder: `folder`, `report`; of nobody: `synthetic`.

Their private mean: `mean`, `points_mean`; what public faces tell about it before: `design`; its `pictures`.

Users import the public names from `jaxgeodp.surfaces`.
"""
