"""Triangle meshes, and surfaces on the disk; nothing here knows faces, curves of faces, or privacy.

A mesh from a file or from points: `connectivity`, `mesh`, `repair`, `point_cloud`, `files`, `distance`.

Its conformal map to the disk: `laplacian`, `boundary_newton`, `doubling`, `unfolding`, `conformal`, `moebius`; and how
good that is: `distortion`.

A surface on the disk: `grid`, `square_root`, `disk_flow`, `registration`; its pictures: `rendering`, `interactive`.

Users import the public names from `jaxgeodp.surfaces`.
"""
