// The page: reads the run, plays it, and answers to its controls.

const $ = id => document.getElementById(id);
const run = JSON.parse($("data").textContent);
const poses = new Float32Array(bytes(run.poses));       // frames x owners x (x y z, w i j k, stretch)
const joints = new Float32Array(bytes(run.joints));     // frames x joints x (point, axis, force)
const contacts = new Float32Array(bytes(run.contacts)); // touching points, frame after frame x (point, force)
const energy = new Float32Array(bytes(run.energy));     // frames x (kinetic, potential)
const frames = run.times.length, bodies = run.bodies.length, owners = bodies + run.ties, jointCount = run.joint_count;

function bytes(text) { return Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer; }

$("title").textContent = run.title;
$("time").max = frames - 1;
for (const speed of [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].filter(s => s >= run.speed / 20)) $("speed").add(new Option(speed + "×", speed, false, speed === run.speed));
run.bodies.forEach((name, i) => { for (const id of ["follow", "trace"]) $(id).add(new Option(name, i)); });
$("follow").value = run.follow;
if (innerWidth <= 560) $("side").open = false;
const css = c => `rgb(${c.slice(0, 3).map(x => Math.round(255 * x))})`;
for (const [id, there, colours] of [["frames", true, run.colours.frame], ["axes", jointCount, [run.colours.axis]], ["forces", jointCount, [run.colours.force]], ["contacts", contacts.length, [run.colours.contact]], ["collisions", run.parts.some(part => part.collision), [[0.95, 0.55, 0.1]]]]) {
  const row = $(id).parentElement; row.hidden = !there;
  row.querySelector("i").style.background = `linear-gradient(90deg, ${colours.map((c, k) => `${css(c)} ${100 * k / colours.length}% ${100 * (k + 1) / colours.length}%`)})`;
}

let stage;
try { stage = new Stage($("scene"), run); } catch (error) { $("message").textContent = error.message; throw error; }
const camera = stage.camera;

// ---- what is shown: a moment between two frames

let frame = 0, moment = 0, now = new Float32Array(owners * 8);

/** Poses at a moment: between frames, straight lines and the shorter way round. */
function pick(at) {
  moment = Math.max(0, Math.min(frames - 1, at)); frame = Math.round(moment);
  const i = Math.min(Math.floor(moment), frames - 1), j = Math.min(i + 1, frames - 1), t = moment - i, size = owners * 8;
  for (let o = 0; o < size; o += 8) {
    const a = i * size + o, b = j * size + o;
    let turn = 0; for (let k = 3; k < 7; k++) turn += poses[a + k] * poses[b + k];
    for (let k = 0; k < 8; k++) now[o + k] = (1 - t) * poses[a + k] + t * poses[b + k] * (k > 2 && k < 7 && turn < 0 ? -1 : 1);
    if (t > 0) { const n = Math.hypot(now[o + 3], now[o + 4], now[o + 5], now[o + 6]); for (let k = 3; k < 7; k++) now[o + k] /= n; }
  }
}

/** Body frames, joint axes and forces as sticks. */
function sticks() {
  const out = [], thin = 0.045 * run.axis, push = (a, b, radius, head, colour) => out.push(...a, ...b, radius, head, colour[0], colour[1], colour[2]);
  const force = (at, f, colour) => {
    const size = Math.hypot(...f); if (!(size > 0)) return;
    push(at, add(at, f, Math.min(run.force_scale, run.longest / size)), 1.3 * thin, 1, colour);
  };
  if ($("frames").checked) for (let b = 0; b < bodies; b++) {
    const m = matrix(now, 8 * b), at = [m[12], m[13], m[14]];
    for (let k = 0; k < 3; k++) push(at, add(at, [m[4 * k], m[4 * k + 1], m[4 * k + 2]], run.axis), thin, 0, run.colours.frame[k]);
  }
  for (let j = 0; j < jointCount; j++) {
    const o = (frame * jointCount + j) * 9, at = joints.subarray(o, o + 3), axis = joints.subarray(o + 3, o + 6);
    if ($("axes").checked && dot(axis, axis) > 0) push(add(at, axis, -0.8 * run.axis), add(at, axis, 0.8 * run.axis), thin, 0, run.colours.axis);
    if ($("forces").checked) force(at, joints.subarray(o + 6, o + 9), run.colours.force);
  }
  const traced = +$("trace").value;
  if (traced >= 0) for (let i = 0, skip = Math.max(1, Math.ceil(frames / 400)); i < frame; i += skip) {
    const a = (i * owners + traced) * 8, b = (Math.min(i + skip, frame) * owners + traced) * 8;
    push(poses.subarray(a, a + 3), poses.subarray(b, b + 3), 0.6 * thin, 0, run.colours.force);
  }
  if ($("contacts").checked) for (let k = run.contact_start[frame]; k < run.contact_start[frame + 1]; k++) force(contacts.subarray(6 * k, 6 * k + 3), contacts.subarray(6 * k + 3, 6 * k + 6), run.colours.contact);
  return out;
}

const target = () => { const f = +$("follow").value; return f < 0 ? camera.target : Array.from(now.subarray(8 * f, 8 * f + 3)); };
const places = Math.max(2, 2 - Math.floor(Math.log10(run.times[frames - 1] - run.times[0] || 1)));
let drawn = [];

function draw() {
  drawn = sticks();
  const view = stage.draw(now, drawn, target());
  drawNames(view);
  $("clock").textContent = run.times[frame].toFixed(places) + " s of " + run.times[frames - 1].toFixed(places) + " s";
  $("time").value = frame;
  const arrows = $("forces").checked || $("contacts").checked, tenth = 0.1 * run.size;
  $("scale").textContent = arrows ? `an arrow of ${tenth.toPrecision(2)} m is ${+(tenth / run.force_scale).toPrecision(2)} N` : "";
  plot.draw();
}

function drawNames(view) {
  const box = $("labels"), shown = $("names").checked;
  if (!shown) { box.replaceChildren(); return; }
  while (box.children.length < bodies) box.append(Object.assign(document.createElement("span"), { textContent: run.bodies[box.children.length] }));
  for (let b = 0; b < bodies; b++) {
    const [x, y, z] = now.subarray(8 * b, 8 * b + 3), at = r => view[r] * x + view[4 + r] * y + view[8 + r] * z + view[12 + r], w = at(3);
    const label = box.children[b];
    label.style.display = w > 0 ? "" : "none";
    label.style.transform = `translate(${0.5 * (1 + at(0) / w) * box.clientWidth}px, ${0.5 * (1 - at(1) / w) * box.clientHeight}px) translate(-50%, -50%)`;
  }
}

// ---- curves over time, with a cursor, and values where the pointer is

const COLOURS = ["#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377"];
const energyPlot = { title: "energy", unit: "J", curves: [["kinetic", COLOURS[0], i => energy[2 * i]], ["potential", COLOURS[1], i => energy[2 * i + 1]], ["total", "var(--total)", i => energy[2 * i] + energy[2 * i + 1]]] };
const plots = [energyPlot, ...run.curves.map(given => {
  const values = new Float32Array(bytes(given.values)), count = given.labels.length;
  return { title: given.title, unit: given.unit, curves: given.labels.map((label, k) => [label, COLOURS[k % COLOURS.length], i => values[i * count + k]]) };
})];
const paint = colour => colour.startsWith("var") ? getComputedStyle(document.documentElement).getPropertyValue(colour.slice(4, -1)).trim() : colour;

const plot = {
  canvas: $("plot"), layer: null, width: 0, height: 0, hovered: null,
  start() {
    plots.forEach((p, k) => $("curve").add(new Option(`${p.title}, ${p.unit}`, k)));
    if (run.curves_left) $("curve").title += `; ${run.curves_left} more would make the page too large`;
    $("curve").onchange = () => { this.choose(+$("curve").value); draw(); };
    this.choose(0);
    const moment = e => { const box = this.canvas.getBoundingClientRect(); return run.times[0] + (run.times[frames - 1] - run.times[0]) * Math.max(0, Math.min(1, (e.clientX - box.left) / box.width)); };
    this.canvas.onpointerdown = e => { this.canvas.setPointerCapture(e.pointerId); seek(moment(e)); };
    this.canvas.onpointermove = e => { if (e.buttons) seek(moment(e)); this.hovered = Math.round(momentOf(moment(e))); this.draw(); };
    this.canvas.onpointerleave = () => { this.hovered = null; this.draw(); };
  },
  choose(k) {
    const { unit, curves } = plots[k]; this.curves = curves; this.unit = unit; this.layer = null;
    $("values").replaceChildren(...curves.map(([name, colour]) => {
      const row = document.createElement("div"), label = Object.assign(document.createElement("span"), { textContent: name });
      label.style.color = colour; row.append(label, document.createElement("b")); return row;
    }));
    let low = Infinity, high = -Infinity;
    for (const [, , value] of curves) for (let i = 0; i < frames; i++) { low = Math.min(low, value(i)); high = Math.max(high, value(i)); }
    this.low = low; this.high = high > low ? high : low + 1;
    this.digits = Math.max(0, 3 - Math.floor(Math.log10(this.high - this.low)));
  },
  x(time) { return this.width * (time - run.times[0]) / Math.max(1e-12, run.times[frames - 1] - run.times[0]); },
  y(value) { const edge = 3 * (window.devicePixelRatio || 1); return this.height - edge - (this.height - 2 * edge) * (value - this.low) / (this.high - this.low); },
  paint() {
    const ratio = window.devicePixelRatio || 1, w = Math.round(this.canvas.clientWidth * ratio), h = Math.round(this.canvas.clientHeight * ratio);
    if (!w || (this.layer && w === this.width && h === this.height)) return;
    this.canvas.width = this.width = w; this.canvas.height = this.height = h;
    this.layer = Object.assign(document.createElement("canvas"), { width: w, height: h });
    const c = this.layer.getContext("2d"); c.lineWidth = 1.5 * ratio; c.lineJoin = "round";
    if (this.low < 0 && this.high > 0) { c.fillStyle = paint("var(--rim)"); c.fillRect(0, this.y(0), w, ratio); }
    for (const [, colour, value] of this.curves) {
      c.strokeStyle = paint(colour); c.beginPath();
      for (let i = 0, skip = Math.max(1, Math.floor(frames / (2 * w))); i < frames; i += skip) c.lineTo(this.x(run.times[i]), this.y(value(i)));
      c.stroke();
    }
  },
  draw() {
    this.paint(); if (!this.layer) return;
    const c = this.canvas.getContext("2d"), x = this.x((1 - moment % 1) * run.times[Math.floor(moment)] + moment % 1 * run.times[Math.min(frames - 1, Math.floor(moment) + 1)]);
    const told = this.hovered === null ? frame : this.hovered;
    c.clearRect(0, 0, this.width, this.height); c.drawImage(this.layer, 0, 0);
    c.fillStyle = paint("var(--veil)"); c.fillRect(x, 0, this.width - x, this.height); // what is to come is pale
    c.fillStyle = paint("var(--ink)"); c.fillRect(Math.min(x, this.width - 2), 0, 2, this.height);
    if (this.hovered !== null) for (const [, colour, value] of this.curves) { c.fillStyle = paint(colour); c.beginPath(); c.arc(this.x(run.times[told]), this.y(value(told)), 3 * (window.devicePixelRatio || 1), 0, 7); c.fill(); }
    $("at").textContent = this.hovered === null ? "" : `at ${run.times[told].toFixed(places)} s`;
    this.curves.forEach(([, , value], k) => { $("values").children[k].lastChild.textContent = (this.digits > 6 ? value(told).toExponential(2) : value(told).toFixed(this.digits)) + " " + this.unit; });
  },
};

// ---- playing

let playing = false, clock = run.times[0], last = null;
/** The moment of a time: a frame and a part of the way to the next. */
function momentOf(t) {
  let a = 0, b = frames - 1;
  while (b - a > 1) { const m = (a + b) >> 1; if (run.times[m] <= t) a = m; else b = m; }
  return b === a ? a : a + Math.max(0, Math.min(1, (t - run.times[a]) / (run.times[b] - run.times[a])));
}
function show(at) { pick(at); clock = run.times[frame]; draw(); }
function seek(time) { setPlaying(false); show(Math.round(momentOf(time))); }
function setPlaying(wanted) {
  playing = wanted && frames > 1; last = null; $("play").classList.toggle("playing", playing);
  if (playing) requestAnimationFrame(tick);
}
function tick(time) {
  if (!playing) return;
  if (last !== null) clock += 0.001 * (time - last) * +$("speed").value;
  last = time;
  if (clock > run.times[frames - 1]) clock = run.times[0];
  pick(momentOf(clock)); draw();
  requestAnimationFrame(tick);
}

$("play").onclick = () => setPlaying(!playing);
$("time").oninput = () => { setPlaying(false); show(+$("time").value); };
for (const id of ["trace", "names", "frames", "axes", "forces", "contacts"]) $(id).onchange = draw;
$("collisions").onchange = () => { stage.collisions = $("collisions").checked; draw(); };
$("follow").onchange = () => { if (!touched) fit(); draw(); };
matchMedia("(prefers-color-scheme: dark)").onchange = () => { plot.layer = null; draw(); };

// ---- the camera's controls

let touched = false; // until the camera is turned, it fits the window
/** See all of the motion in what the bars of the page leave free. */
function fit() {
  const w = Math.max(1, innerWidth), h = Math.max(1, innerHeight), side = $("side").open && w > 700 ? $("side").offsetWidth + 14 : 0, k = 2 * camera.angle / h;
  camera.hull = +$("follow").value < 0 || +$("follow").value !== run.follow ? run.hull : run.start_hull;
  camera.fit({ left: k * 0.46 * w, right: k * (0.46 * w - side), bottom: k * (0.46 * h - 56), top: k * (0.46 * h - 20) });
}
$("home").onclick = () => { touched = false; $("follow").value = run.follow; fit(); draw(); };
$("side").ontoggle = () => { if (!touched) fit(); draw(); };
addEventListener("resize", () => { if (!touched) fit(); draw(); });

const pointers = new Map();
const spread = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
$("scene").onpointerdown = e => { $("scene").setPointerCapture(e.pointerId); pointers.set(e.pointerId, [e.clientX, e.clientY]); };
$("scene").onpointerup = $("scene").onpointercancel = e => pointers.delete(e.pointerId);
$("scene").onpointermove = e => {
  const from = pointers.get(e.pointerId); if (!from) return;
  const dx = e.clientX - from[0], dy = e.clientY - from[1], before = pointers.size === 2 ? spread() : 0;
  pointers.set(e.pointerId, [e.clientX, e.clientY]); touched = true;
  if (pointers.size === 2) camera.distance *= before / Math.max(1, spread());
  else if (e.shiftKey || e.buttons === 2 || e.buttons === 4) {
    const [right, up] = camera.axes, k = 2 * camera.angle * camera.distance / $("scene").clientHeight;
    camera.target = add(add(camera.target, right, -k * dx), up, k * dy);
  } else { camera.azimuth -= 0.006 * dx; camera.elevation = Math.min(1.55, Math.max(-1.55, camera.elevation + 0.006 * dy)); }
  draw();
};
$("scene").oncontextmenu = e => e.preventDefault();
$("scene").addEventListener("wheel", e => { e.preventDefault(); touched = true; camera.distance *= Math.exp(0.001 * e.deltaY); draw(); }, { passive: false });
addEventListener("keydown", e => {
  if (e.target.tagName === "SELECT") return;
  if (e.key === " ") { e.preventDefault(); setPlaying(!playing); }
  if (e.key === "ArrowRight" || e.key === "ArrowLeft") { e.preventDefault(); setPlaying(false); show(frame + (e.key === "ArrowRight" ? 1 : -1)); }
  if (e.key === "f") $("home").onclick();
});

plot.start(); fit(); show(0); setPlaying(true);
window.dalembert = {
  show, pause: () => setPlaying(false), frame: () => frame, camera: () => [camera.azimuth, camera.elevation, camera.distance], arrows: () => drawn.length / 11,
  bodies: () => Array.from({ length: bodies }, (_, b) => Array.from(now.subarray(8 * b, 8 * b + 7))).flat(),
};
