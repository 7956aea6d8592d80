"""Style and script of pages: for screens of any width, light and dark, and for paper."""

from typing import LiteralString

#: Of pages.
STYLE: LiteralString = """
:root{color-scheme:light dark;--ink:#222;--soft:#666;--rule:#e4e4e4;--code:#f6f6f6;--paper:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--soft:#a8a8a8;--rule:#3c3c3c;--code:#262626;--paper:#171717}}
@media print{:root{--ink:#000;--soft:#444;--rule:#bbb;--code:#fff;--paper:#fff}}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:var(--ink);
background:var(--paper)}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:1.6rem}table{border-collapse:collapse;width:100%}
td{padding:.25rem .6rem .25rem 0;vertical-align:top;border-bottom:1px solid var(--rule);overflow-wrap:anywhere}
td:first-child{color:var(--soft);width:11rem}
code{overflow-wrap:anywhere}img,canvas{background:#fff;border-radius:.4rem}
canvas{width:100%;max-width:30rem;touch-action:none;cursor:grab;display:block}img{max-width:100%}
p img{width:32%}
pre{background:var(--code);padding:.8rem;overflow:auto;font-size:.8rem;max-height:24rem}
@media (max-width:34rem){td{display:block;border:0;padding:0}td:first-child{width:auto;padding-top:.6rem;
font-size:.85rem}p img{width:100%}}
@media print{body{margin:0;max-width:none;font-size:10pt;line-height:1.35}h1{margin-top:0}h2{break-after:avoid}
tr,img,canvas{break-inside:avoid}#made{break-before:page}#turn{display:none}img,canvas{max-width:9cm}p img{width:32%}
pre{max-height:none;font-size:6.5pt;white-space:pre-wrap;overflow-wrap:anywhere;padding:0}}"""
#: Turns lines with the mouse or a finger; orthographic, what is behind is paler. A line of one point is a dot, filled
#: or not, with its name. The lines are data of the canvas, and so the script is the same on all pages.
TURN: LiteralString = """
const c=document.getElementById("space"),L=JSON.parse(c.dataset.lines),g=c.getContext("2d");let a=-.5236,b=.5236,d=null;
const R=Math.max(...L.flatMap(l=>l.p.map(q=>Math.hypot(...q))))||1,e=1e-3*R;g.font="30px sans-serif";
function draw(){const w=c.width,s=.45*w/R,ca=Math.cos(a),sa=Math.sin(a),cb=Math.cos(b),sb=Math.sin(b);
const at=q=>{const x=ca*q[0]-sa*q[1],y=sa*q[0]+ca*q[1];return [w/2+s*x,w/2-s*(sb*y+cb*q[2]),cb*y-sb*q[2]]};
g.clearRect(0,0,w,w);for(const l of L){const P=l.p.map(at);g.strokeStyle=g.fillStyle=l.c;g.lineWidth=2*l.w;
if(P.length==1){const [x,y,z]=P[0];g.globalAlpha=z>e?.5:1;g.beginPath();g.arc(x,y,l.t===undefined?14:8,0,7);
if(l.t===undefined)g.stroke();else{g.fill();g.fillText(l.t,x+15,y-11)}}
for(let k=1;k<P.length;k++){g.globalAlpha=P[k-1][2]+P[k][2]>e?.35:1;g.beginPath();g.moveTo(P[k-1][0],P[k-1][1]);
g.lineTo(P[k][0],P[k][1]);g.stroke()}}}
c.onpointerdown=e=>{d=[e.clientX,e.clientY];c.setPointerCapture(e.pointerId)};c.onpointerup=()=>d=null;
c.onpointermove=e=>{if(d){a+=(e.clientX-d[0])/120;b=Math.max(-1.57,Math.min(1.57,b+(e.clientY-d[1])/120));
d=[e.clientX,e.clientY];draw()}};draw()"""
