// The stage: draws a scene with WebGL 2, with a light that throws shadows on a floor, and a camera to turn about it.

const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const add = (a, b, k = 1) => [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = a => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

// ---- 4 x 4 matrices, column by column

function multiply(a, b) {
  const m = new Float32Array(16);
  for (let c = 0; c < 4; c++) for (let r = 0; r < 4; r++) for (let k = 0; k < 4; k++) m[4 * c + r] += a[4 * k + r] * b[4 * c + k];
  return m;
}
const perspective = (width, height, near, far) => new Float32Array([1 / width, 0, 0, 0, 0, 1 / height, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);
const parallel = (half, near, far) => new Float32Array([1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, 2 / (near - far), 0, 0, 0, (far + near) / (near - far), 1]);
function viewFrom(eye, [x, y, z]) {
  return new Float32Array([x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1]);
}
/** Matrix of a pose: position, quaternion (scalar first), stretch along z. */
function matrix(p, o) {
  const w = p[o + 3], i = p[o + 4], j = p[o + 5], k = p[o + 6], s = p[o + 7];
  return new Float32Array([
    1 - 2 * (j * j + k * k), 2 * (i * j + k * w), 2 * (i * k - j * w), 0,
    2 * (i * j - k * w), 1 - 2 * (i * i + k * k), 2 * (j * k + i * w), 0,
    2 * s * (i * k + j * w), 2 * s * (j * k - i * w), s * (1 - 2 * (i * i + j * j)), 0,
    p[o], p[o + 1], p[o + 2], 1]);
}
const identity = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
/** Right, up and back of something that looks along -back. */
function axesOf(back) {
  const right = unit(cross(Math.abs(back[2]) > 0.9999 ? [0, 1, 0] : [0, 0, 1], back));
  return [right, cross(back, right), back];
}

// ---- the camera

class Camera {
  constructor(run) {
    this.hull = run.hull; this.middle = run.middle;
    this.azimuth = run.azimuth * Math.PI / 180; this.elevation = run.elevation * Math.PI / 180;
    this.angle = 0.4; // tangent of half the angle of view, upwards
  }
  get axes() {
    const c = Math.cos(this.elevation);
    return axesOf([c * Math.cos(this.azimuth), c * Math.sin(this.azimuth), Math.sin(this.elevation)]);
  }
  /** Stand where all of the hull is seen within borders (tangents to the left, right, bottom, top); scene.py: fitting_eye. */
  fit({ left, right, bottom, top }) {
    const axes = this.axes;
    let l = -Infinity, r = -Infinity, b = -Infinity, t = -Infinity;
    for (const p of this.hull) {
      const [u, v, w] = axes.map(axis => dot(p, axis));
      l = Math.max(l, left * w - u); r = Math.max(r, right * w + u); b = Math.max(b, bottom * w - v); t = Math.max(t, top * w + v);
    }
    const depth = Math.max((l + r) / (left + right), (b + t) / (bottom + top)), near = dot(this.middle, axes[2]);
    const place = [0.5 * (r - right * depth + left * depth - l), 0.5 * (t - top * depth + bottom * depth - b), near];
    this.distance = depth - near;
    this.target = [0, 1, 2].map(k => dot(place, axes.map(axis => axis[k])));
  }
  eye(target) { return add(target, this.axes[2], this.distance); }
}

// ---- shaders

const LIT = `
  uniform vec3 light; uniform mat4 shadowView; uniform highp sampler2DShadow shadows;
  vec3 linear(vec3 c) { return c * c; }
  vec3 screen(vec3 c) { return sqrt(clamp(c - 0.12 * c * c, 0.0, 1.0)); } // white keeps its shades
  float lightAt(vec3 at) {
    vec4 p = shadowView * vec4(at, 1.0); vec3 s = 0.5 * p.xyz / p.w + 0.5;
    if (any(lessThan(s, vec3(0.0))) || any(greaterThan(s, vec3(1.0)))) return 1.0;
    vec2 pixel = 1.2 / vec2(textureSize(shadows, 0)); float sum = 0.0;
    for (float x = -1.5; x < 2.0; x += 1.0) for (float y = -1.5; y < 2.0; y += 1.0) sum += texture(shadows, vec3(s.xy + pixel * vec2(x, y), s.z));
    return sum / 16.0;
  }
  vec3 lit(vec3 albedo, vec3 n, vec3 e, float shade) {
    vec3 ambient = mix(vec3(0.26, 0.25, 0.24), vec3(0.46, 0.48, 0.52), 0.5 + 0.5 * n.z);
    float key = max(dot(n, light), 0.0) * shade, shine = pow(max(dot(n, normalize(light + e)), 0.0), 64.0) * shade;
    return albedo * (ambient + 0.62 * key + 0.1 * max(dot(n, e), 0.0)) + 0.12 * shine;
  }`;

const SOLID = [`
  layout(location=0) in vec3 position; layout(location=1) in vec3 normal;
  uniform mat4 view, model; uniform vec3 low, size; out vec3 n, at;
  void main() { vec4 p = model * vec4(low + size * position, 1.0); n = mat3(model) * normal; at = p.xyz; gl_Position = view * p; }`, LIT + `
  in vec3 n, at; uniform vec4 colour; uniform vec3 eye; uniform float bias; out vec4 o;
  void main() {
    vec3 m = normalize(n), e = normalize(eye - at); if (dot(m, e) < 0.0) m = -m;
    o = vec4(screen(lit(linear(colour.rgb), m, e, lightAt(at + bias * m))), colour.a);
  }`];
const DEPTH = [`
  layout(location=0) in vec3 position; uniform mat4 view, model; uniform vec3 low, size;
  void main() { gl_Position = view * model * vec4(low + size * position, 1.0); }`, `void main() {}`];
const FLOOR = [`
  uniform mat4 view; uniform vec3 centre; uniform float reach; out vec3 at;
  void main() { vec2 c = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0; at = centre + vec3(reach * c, 0.0); gl_Position = view * vec4(at, 1.0); }`, LIT + `
  in vec3 at; uniform vec3 centre, plain, line; uniform float spacing, reach; out vec4 o;
  float lines(vec2 p, float width) { vec2 w = fwidth(p), d = abs(fract(p - 0.5) - 0.5); vec2 l = 1.0 - smoothstep(vec2(0.0), w * width, d); l *= 1.0 - smoothstep(0.3, 0.9, w); return max(l.x, l.y); }
  void main() {
    float ink = max(0.35 * lines(at.xy / spacing, 1.3), 0.6 * lines(at.xy / (5.0 * spacing), 1.5));
    vec3 base = mix(plain, line, ink) * mix(0.74, 1.0, lightAt(at));
    o = vec4(base, 1.0 - smoothstep(0.25, 0.95, distance(at, centre) / reach));
  }`];
const STICKS = [`
  layout(location=0) in vec4 shape; layout(location=1) in vec3 start; layout(location=2) in vec3 end; layout(location=3) in vec2 kind; layout(location=4) in vec3 colour;
  uniform mat4 view; out vec3 n, at, c;
  void main() {
    vec3 d = end - start; float len = max(length(d), 1e-9); vec3 z = d / len;
    vec3 x = normalize(cross(z, abs(z.z) < 0.9 ? vec3(0.0, 0.0, 1.0) : vec3(1.0, 0.0, 0.0))), y = cross(z, x);
    float tip = kind.y * min(6.0 * kind.x, 0.5 * len), wide = min(2.6 * kind.x, 0.6 * tip);
    float r = shape.w < 0.5 ? min(kind.x, kind.y > 0.0 ? 0.5 * wide : kind.x) : shape.w < 2.5 ? wide : 0.0, h = shape.w < 0.5 ? shape.z * (len - tip) : shape.w < 2.5 ? len - tip : len;
    vec3 out_ = shape.x * x + shape.y * y;
    n = shape.w < 0.5 ? out_ : shape.w < 1.5 ? -z : normalize(out_ + 0.4 * z);
    at = start + r * out_ + h * z; c = colour; gl_Position = view * vec4(at, 1.0);
  }`, LIT + `
  in vec3 n, at, c; uniform vec3 eye; uniform float alpha; out vec4 o;
  void main() { o = vec4(screen(lit(linear(c), normalize(n), normalize(eye - at), 1.0) + 0.2 * linear(c)), alpha); }`];

/** Rings of a stick: (cos, sin, along, kind); kind 0 shaft, 1 underside of the head, 2 its side, 3 its tip. */
function stickMesh(sides = 16) {
  const points = [], faces = [], rings = [[0, 0], [1, 0], [1, 1], [1, 2], [1, 3]];
  for (const [along, kind] of rings) for (let k = 0; k < sides; k++) points.push(Math.cos(2 * Math.PI * k / sides), Math.sin(2 * Math.PI * k / sides), along, kind);
  for (const [a, b] of [[0, 1], [1, 2], [3, 4]]) for (let k = 0; k < sides; k++) {
    const m = (k + 1) % sides;
    faces.push(a * sides + k, a * sides + m, b * sides + m, a * sides + k, b * sides + m, b * sides + k);
  }
  return [new Float32Array(points), new Uint16Array(faces)];
}

/** Colours of the air and of the floor, by day and by night. */
const looks = run => matchMedia("(prefers-color-scheme: dark)").matches
  ? { background: [0.086, 0.094, 0.11], plain: [0.15, 0.16, 0.18], line: [0.3, 0.32, 0.35] }
  : { background: run.background, plain: [0.905, 0.915, 0.93], line: [0.72, 0.74, 0.77] };

// ---- the stage

class Stage {
  constructor(canvas, run) {
    const gl = this.gl = canvas.getContext("webgl2", { antialias: true, preserveDrawingBuffer: true });
    if (!gl) throw new Error("This page needs WebGL 2, which this browser does not offer.");
    this.canvas = canvas; this.run = run; this.camera = new Camera(run);
    [this.solid, this.depth, this.floor, this.sticks] = [SOLID, DEPTH, FLOOR, STICKS].map(([vertex, fragment]) => this.program(vertex, fragment));
    this.parts = run.parts.map(part => this.mesh(part));
    this.makeSticks();
    this.makeShadows(2048);
  }
  program(vertex, fragment) {
    const gl = this.gl, p = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + text); gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(p, shader);
    }
    gl.linkProgram(p);
    const count = gl.getProgramParameter(p, gl.ACTIVE_UNIFORMS), at = {};
    for (let i = 0; i < count; i++) { const { name } = gl.getActiveUniform(p, i); at[name] = gl.getUniformLocation(p, name); }
    return { p, at };
  }
  buffer(target, data) { const gl = this.gl, b = gl.createBuffer(); gl.bindBuffer(target, b); gl.bufferData(target, data, gl.STATIC_DRAW); return b; }
  mesh(part) {
    const gl = this.gl, array = gl.createVertexArray(); gl.bindVertexArray(array);
    this.buffer(gl.ARRAY_BUFFER, new Uint16Array(bytes(part.vertices))); gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 3, gl.UNSIGNED_SHORT, true, 8, 0);
    this.buffer(gl.ARRAY_BUFFER, new Int8Array(bytes(part.normals))); gl.enableVertexAttribArray(1); gl.vertexAttribPointer(1, 3, gl.BYTE, true, 4, 0);
    const index = part.wide ? new Uint32Array(bytes(part.faces)) : new Uint16Array(bytes(part.faces));
    this.buffer(gl.ELEMENT_ARRAY_BUFFER, index);
    return { ...part, array, count: index.length, type: part.wide ? gl.UNSIGNED_INT : gl.UNSIGNED_SHORT };
  }
  makeSticks() {
    const gl = this.gl, [points, faces] = stickMesh();
    this.stickArray = gl.createVertexArray(); this.stickCount = faces.length; gl.bindVertexArray(this.stickArray);
    this.buffer(gl.ARRAY_BUFFER, points); gl.enableVertexAttribArray(0); gl.vertexAttribPointer(0, 4, gl.FLOAT, false, 0, 0);
    this.buffer(gl.ELEMENT_ARRAY_BUFFER, faces);
    this.stickBuffer = gl.createBuffer(); gl.bindBuffer(gl.ARRAY_BUFFER, this.stickBuffer);
    [[1, 3, 0], [2, 3, 12], [3, 2, 24], [4, 3, 32]].forEach(([place, size, offset]) => {
      gl.enableVertexAttribArray(place); gl.vertexAttribPointer(place, size, gl.FLOAT, false, 44, offset); gl.vertexAttribDivisor(place, 1);
    });
  }
  makeShadows(size) {
    const gl = this.gl, texture = this.shadowMap = gl.createTexture(); this.shadowSize = size;
    gl.bindTexture(gl.TEXTURE_2D, texture); gl.texImage2D(gl.TEXTURE_2D, 0, gl.DEPTH_COMPONENT24, size, size, 0, gl.DEPTH_COMPONENT, gl.UNSIGNED_INT, null);
    for (const [name, value] of [[gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR], [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE], [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL]]) gl.texParameteri(gl.TEXTURE_2D, name, value);
    this.shadowTarget = gl.createFramebuffer(); gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowTarget);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, texture, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }
  use({ p, at }, values) {
    const gl = this.gl; gl.useProgram(p);
    for (const [name, value] of Object.entries(values)) {
      if (!(name in at)) continue;
      if (typeof value === "number") name === "shadows" ? gl.uniform1i(at[name], value) : gl.uniform1f(at[name], value);
      else if (value.length === 16) gl.uniformMatrix4fv(at[name], false, value);
      else gl["uniform" + value.length + "fv"](at[name], value);
    }
  }
  drawParts(program, poses, wanted) {
    const gl = this.gl;
    for (const part of this.parts) {
      if (!wanted(part) || (part.collision && !this.collisions)) continue;
      const model = part.owner < 0 ? identity : matrix(poses, 8 * part.owner);
      this.use(program, { model, low: part.low, size: part.size, colour: part.colour });
      gl.bindVertexArray(part.array); gl.drawElements(gl.TRIANGLES, part.count, part.type, 0);
    }
  }
  /** Draw poses (owners x 8) and sticks (n x 11: start, end, radius, head, colour) around a target. Returns the view's matrix. */
  draw(poses, sticks, target) {
    const { gl, run, camera, canvas } = this, ratio = window.devicePixelRatio || 1;
    const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    gl.enable(gl.DEPTH_TEST); gl.disable(gl.BLEND);

    const reach = 1.5 * run.radius, lightAxes = axesOf(run.light), focus = target;
    const shadowView = multiply(parallel(reach, 0.1 * reach, 8 * reach), viewFrom(add(focus, run.light, 4 * reach), lightAxes));
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowTarget); gl.viewport(0, 0, this.shadowSize, this.shadowSize); gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.POLYGON_OFFSET_FILL); gl.polygonOffset(2.0, 4.0);
    this.use(this.depth, { view: shadowView });
    this.drawParts(this.depth, poses, part => part.colour[3] === 1);
    gl.disable(gl.POLYGON_OFFSET_FILL); gl.bindFramebuffer(gl.FRAMEBUFFER, null);

    const eye = camera.eye(target), far = 60 * Math.max(camera.distance, run.radius);
    const view = multiply(perspective(camera.angle * w / h, camera.angle, 0.01 * camera.distance, far), viewFrom(eye, camera.axes));
    gl.viewport(0, 0, w, h); const look = looks(run); gl.clearColor(...look.background, 1); gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.activeTexture(gl.TEXTURE0); gl.bindTexture(gl.TEXTURE_2D, this.shadowMap);
    const common = { view, eye, light: run.light, shadowView, shadows: 0, ...look, bias: 0.004 * run.radius };
    gl.enable(gl.BLEND); gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.use(this.solid, common);
    this.drawParts(this.solid, poses, part => part.colour[3] === 1);
    if (run.floor !== null && eye[2] > run.floor) {
      this.use(this.floor, { ...common, centre: [target[0], target[1], run.floor], reach: 12 * run.radius, spacing: run.spacing });
      gl.bindVertexArray(null); gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
    this.use(this.solid, common);
    this.drawParts(this.solid, poses, part => part.colour[3] < 1);
    if (sticks.length) {
      gl.bindVertexArray(this.stickArray); gl.bindBuffer(gl.ARRAY_BUFFER, this.stickBuffer); gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(sticks), gl.DYNAMIC_DRAW);
      for (const [test, alpha] of [[gl.GREATER, 0.22], [gl.LEQUAL, 1]]) { // faint where a body hides them
        gl.depthFunc(test); gl.depthMask(alpha === 1); this.use(this.sticks, { ...common, alpha });
        gl.drawElementsInstanced(gl.TRIANGLES, this.stickCount, gl.UNSIGNED_SHORT, 0, sticks.length / 11);
      }
    }
    return view;
  }
}
