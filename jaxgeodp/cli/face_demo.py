"""``jaxgeodp face demo``: private mean faces of 200 people who do not exist."""

import itertools
import pathlib
import time

from jaxgeodp.cli.face_pictures import draw_errors, draw_faces, draw_lines, draw_points
from jaxgeodp.cli.frame import OUTPUT, say
from jaxgeodp.cli.progress import progress_bar
from jaxgeodp.experiments.face_study import face_study, points_alone, points_together, squared_error
from jaxgeodp.faces.design import design_faces
from jaxgeodp.faces.surface_design import design_surfaces
from jaxgeodp.meshes.spectrum import SurfaceBasis

# Releases of these strengths.
_MUS = (1.0, 2.0, 3.0)
_FACES, _REFERENCE = 200, 24
# Of the second bar: of each release, and of pictures.
_STEPS, _PICTURES = 4, 3


def run_demo(out: pathlib.Path) -> None:
    """Release, draw and record everything into the folder ``out``."""
    start = time.perf_counter()
    with progress_bar("faces", 1 + _REFERENCE + _FACES) as advance:
        study = face_study(_FACES, _REFERENCE, progress=advance)
    template, public, people = study.template, study.reference, study.private
    mean, point_mean = people.curves.mean(axis=0), people.points.mean(axis=0)
    pictures = [("template: one public person", template.curves), ("mean of the 200 (not private)", mean)]
    alone = squared_error(template.curves, mean), squared_error(public.curves.mean(axis=0), mean)
    rows = {
        "template alone (no data)": [alone[0]] * len(_MUS),
        f"mean of {_REFERENCE} public people (no data)": [alone[1]] * len(_MUS),
    }
    with progress_bar("releases and pictures", _STEPS * len(_MUS) + _PICTURES) as advance:
        done = itertools.count(1)

        def step():
            advance(next(done))

        noisy, basis = {}, SurfaceBasis.of_curves(template.curves)
        for mu in _MUS:
            design = design_surfaces(basis, public.curves, _FACES, mu)
            release = design.release(people.curves)
            release.save(out / f"release-mu-{mu:g}.json")
            step()
            pictures.append((f"private, μ = {mu:g}", release.value))
            rows.setdefault("a surface", []).append(squared_error(release.value, mean))
            curves = design_faces(template.curves, public.curves, _FACES, mu).release(people.curves)
            rows.setdefault("radial curves, each by itself", []).append(squared_error(curves.value, mean))
            step()
            if mu == _MUS[0]:  # where rings are seen best, and errors are largest
                pictures.insert(2, (f"private radial curves, μ = {mu:g}", curves.value))
                draw_errors(out / "expected.png", design, _FACES, template)
            noisy = {
                "noise on every point, one bound for a face": points_together(study, mu),
                "noise on every point, bounds by coordinate": points_alone(study, mu),
            }
            step()
            noisy = {name: mechanism.release(people.points).value for name, mechanism in noisy.items()}
            for name, value in noisy.items():
                rows.setdefault(name, []).append(squared_error(value, point_mean))
            step()
        draw_points(out / "pointwise.png", noisy, study.generator.triangles, _MUS[-1])
        step()
        draw_faces(out / "faces.png", pictures, template)
        step()
        draw_lines(out / "curves.png", pictures)
        step()
    OUTPUT.print("mean squared error of a point against the mean of the 200, faces of area 1, times 10,000:")
    OUTPUT.print(" " * 46 + "".join(f"{f'μ = {mu:g}':>9}" for mu in _MUS), highlight=False)
    for name, errors in rows.items():
        OUTPUT.print(f"  {name:<44}" + "".join(f"{1e4 * error:9.3f}" for error in errors), highlight=False)
    seconds = time.perf_counter() - start
    say(f"Wrote {out} in {seconds:.0f} s; look at faces.png.")
