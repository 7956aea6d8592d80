"""Faces: meshes with two landmarks, as radial curves relative to a public template, and their private means.

One face: `landmarks`, `curves`. Many of them, in a private folder: `folder`, `report`; of nobody: `synthetic`.

Their private mean, a whole face as one vector: `surface_mean`, and what public faces tell about it before:
`surface_design`, `shrinkage`. By radial curves: `mean`, `design`; by points: `points_mean`. `pictures` of it.

Users import the public names from `jaxgeodp.surfaces`.
"""
