"""Surfaces: from triangle meshes to curves on a disk, private mean faces, synthetic faces."""

from jaxgeodp.surfaces.conformal import disk_conformal_map
from jaxgeodp.surfaces.distortion import angle_distortion, beltrami, flips
from jaxgeodp.surfaces.face_curves import FaceCurves, FaceTemplate, face_curves
from jaxgeodp.surfaces.face_design import FaceDesign, design_faces, norm_bounds, smooth_across, synthetic_reference
from jaxgeodp.surfaces.face_mean import FaceMeanMechanism
from jaxgeodp.surfaces.folder import Faces, mesh_files, process_faces
from jaxgeodp.surfaces.grid import polar_grid, radial_curves, surface_from_curves, surface_from_grid
from jaxgeodp.surfaces.interactive import interactive_surfaces
from jaxgeodp.surfaces.mesh import Mesh
from jaxgeodp.surfaces.mesh_files import read_mesh
from jaxgeodp.surfaces.moebius import moebius_center
from jaxgeodp.surfaces.point_cloud import mesh_from_points
from jaxgeodp.surfaces.points_mean import JointGaussian, PointwiseGaussian
from jaxgeodp.surfaces.registration import Registration, register
from jaxgeodp.surfaces.rendering import draw_curves, draw_surfaces
from jaxgeodp.surfaces.repair import RepairReport, repair
from jaxgeodp.surfaces.square_root import align, normalize, similarity, square_root_field
from jaxgeodp.surfaces.synthetic import SyntheticFaces, synthetic_face

__all__ = [
    "FaceCurves",
    "FaceDesign",
    "FaceMeanMechanism",
    "FaceTemplate",
    "Faces",
    "JointGaussian",
    "Mesh",
    "PointwiseGaussian",
    "Registration",
    "RepairReport",
    "SyntheticFaces",
    "align",
    "angle_distortion",
    "beltrami",
    "design_faces",
    "disk_conformal_map",
    "draw_curves",
    "draw_surfaces",
    "face_curves",
    "flips",
    "interactive_surfaces",
    "mesh_files",
    "mesh_from_points",
    "moebius_center",
    "norm_bounds",
    "normalize",
    "polar_grid",
    "process_faces",
    "radial_curves",
    "read_mesh",
    "register",
    "repair",
    "similarity",
    "smooth_across",
    "square_root_field",
    "surface_from_curves",
    "surface_from_grid",
    "synthetic_face",
    "synthetic_reference",
]
