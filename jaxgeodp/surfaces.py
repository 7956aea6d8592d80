"""Surfaces: from triangle meshes to curves on a disk (`meshes`), private mean faces, synthetic faces (`faces`)."""

from jaxgeodp.faces.curves import FaceCurves, FaceTemplate, face_curves
from jaxgeodp.faces.design import FaceDesign, design_faces, norm_bounds, smooth_across, synthetic_reference
from jaxgeodp.faces.folder import Faces, mesh_files, process_faces
from jaxgeodp.faces.mean import FaceMeanMechanism
from jaxgeodp.faces.pictures import draw_curves, surface_from_curves
from jaxgeodp.faces.points_mean import JointGaussian, PointwiseGaussian
from jaxgeodp.faces.surface_design import SurfaceDesign, design_surfaces
from jaxgeodp.faces.surface_mean import SurfaceMeanMechanism
from jaxgeodp.faces.synthetic import SyntheticFaces, synthetic_face
from jaxgeodp.meshes.conformal import disk_conformal_map
from jaxgeodp.meshes.distortion import angle_distortion, beltrami, flips
from jaxgeodp.meshes.files import read_mesh
from jaxgeodp.meshes.grid import polar_grid, radial_curves, surface_from_grid
from jaxgeodp.meshes.interactive import interactive_surfaces
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.meshes.moebius import moebius_center
from jaxgeodp.meshes.point_cloud import mesh_from_points
from jaxgeodp.meshes.registration import Registration, register
from jaxgeodp.meshes.rendering import draw_surfaces
from jaxgeodp.meshes.repair import RepairReport, repair
from jaxgeodp.meshes.spectrum import SurfaceBasis
from jaxgeodp.meshes.square_root import align, normalize, similarity, square_root_field

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
    "SurfaceBasis",
    "SurfaceDesign",
    "SurfaceMeanMechanism",
    "SyntheticFaces",
    "align",
    "angle_distortion",
    "beltrami",
    "design_faces",
    "design_surfaces",
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
