"""Rotatable meshes on a page, and a page that shows vertex numbers on a click."""

import json
from typing import LiteralString

import numpy as np

from jaxgeodp.pictures.elements import Element, element, page
from jaxgeodp.pictures.style import STYLE

# More are drawn as a part of them: a browser draws each frame anew.
_MOST_TRIANGLES = 40_000
#: Triangles from the farthest to the nearest, shaded by how they lie to the light; a click finds the nearest vertex in
#: front of others at its place, and says its number in the file, where the page has a place for it.
TURN_MESH: LiteralString = """
const c=document.getElementById("mesh"),M=JSON.parse(c.dataset.mesh),g=c.getContext("2d"),told=document.getElementById(
"told");let a=0,b=0,z=1,d=null,moved=false,marked=-1;const V=M.v,T=M.t,N=M.n;
const R=Math.max(...V.map(q=>Math.hypot(...q)))||1;
const at=q=>{const x=Math.cos(a)*q[0]+Math.sin(a)*q[2],w=-Math.sin(a)*q[0]+Math.cos(a)*q[2];
return [c.width/2+.47*z*c.width/R*x,c.height/2-.47*z*c.height/R*(Math.cos(b)*q[1]-Math.sin(b)*w),
Math.sin(b)*q[1]+Math.cos(b)*w]};let P=[];
function draw(){P=V.map(at);g.fillStyle="#fff";g.fillRect(0,0,c.width,c.height);
const order=T.map((t,i)=>[P[t[0]][2]+P[t[1]][2]+P[t[2]][2],i]).sort((x,y)=>x[0]-y[0]);
for(const [,i] of order){const [p,q,r]=T[i].map(k=>P[k]);const u=[q[0]-p[0],q[1]-p[1],q[2]-p[2]],
v=[r[0]-p[0],r[1]-p[1],r[2]-p[2]],s=.47*z*c.width/R;
const n=[u[1]*v[2]*s-u[2]*s*v[1],u[2]*s*v[0]-u[0]*v[2]*s,u[0]*v[1]-u[1]*v[0]],l=Math.hypot(...n)||1;
const h=Math.round(70+170*Math.abs(.9*n[2]-.3*n[0]-.3*n[1])/l/1.05);g.fillStyle=g.strokeStyle=
`rgb(${h},${Math.round(.88*h)},${Math.round(.78*h)})`;g.beginPath();g.moveTo(p[0],p[1]);g.lineTo(q[0],q[1]);
g.lineTo(r[0],r[1]);g.closePath();g.fill();g.stroke()}
if(marked>=0){const q=P[marked];g.fillStyle="#c33b2f";g.beginPath();g.arc(q[0],q[1],7,0,7);g.fill()}}
c.onpointerdown=e=>{d=[e.clientX,e.clientY];moved=false;c.setPointerCapture(e.pointerId)};
c.onpointermove=e=>{if(d){const x=e.clientX-d[0],y=e.clientY-d[1];if(moved||Math.hypot(x,y)>3){moved=true;
a+=x/150;b=Math.max(-1.5,Math.min(1.5,b+y/150));d=[e.clientX,e.clientY];draw()}}};
c.onpointerup=e=>{d=null;if(moved||!told)return;const k=c.width/c.clientWidth,o=c.getBoundingClientRect(),
x=(e.clientX-o.left)*k,y=(e.clientY-o.top)*k;let best=1e9,near=[];
P.forEach((q,i)=>{const r=Math.hypot(q[0]-x,q[1]-y);if(N[i]<0)return;if(r<14)near.push([r-60*q[2]/R,i]);
if(r<best){best=r;marked=i}});
if(near.length)marked=near.reduce((x,y)=>x[0]<y[0]?x:y)[1];
told.textContent=`Vertex ${N[marked]}: say --nose ${N[marked]} or --up ${N[marked]}.`;draw()};
c.onwheel=e=>{e.preventDefault();z=Math.max(.5,Math.min(12,z*Math.exp(-e.deltaY/600)));draw()};draw()"""


def page_of_mesh(name: str, vertices: np.ndarray, triangles: np.ndarray, numbers: np.ndarray) -> str:
    """Return a page with a mesh.

    Args:
        name: of its file.
        vertices: (V, 3).
        triangles: (F, 3).
        numbers: (V,), of the vertices in the file.

    Returns:
        HTML that needs no other file and loads nothing.
    """
    return page(
        f"Vertices of {name}",
        element("h1", f"Vertices of {name}"),
        element("p", "Turn it by hand, zoom by the wheel, and click on the tip of the nose, or its root."),
        mesh_canvas(vertices, triangles, numbers),
        element("p", "No vertex is marked.", id="told"),
        style=STYLE,
        script=TURN_MESH,
    )


def mesh_canvas(vertices: np.ndarray, triangles: np.ndarray, numbers: np.ndarray) -> Element:
    """Return the canvas on which `TURN_MESH` draws; see `page_of_mesh`."""
    middle = 0.5 * (vertices.max(axis=0) + vertices.min(axis=0))
    size = float(np.max(np.ptp(vertices, axis=0))) or 1.0
    shown = triangles[:: -(-len(triangles) // _MOST_TRIANGLES)]
    mesh = {"v": np.round((vertices - middle) / size, 5).tolist(), "t": shown.tolist(), "n": numbers.tolist()}
    return element("canvas", id="mesh", width="960", height="960", data_mesh=json.dumps(mesh, separators=(",", ":")))
