"""Surfaces: from a triangle mesh to curves on a disk, and synthetic faces."""
