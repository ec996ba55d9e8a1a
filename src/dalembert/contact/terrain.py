"""The height field: a smooth surface z = h(x, y) through a grid of heights, and the point of it nearest to a point.

Between the grid's points h is a bicubic (Catmull-Rom) patch: continuous with its slopes, so that a step's Newton
iteration sees no edges. Beyond the grid the surface goes on level with its border.
"""
from __future__ import annotations

from math import sqrt

from dalembert.kernels import inline, kernel


@inline
def _weights(t):
    """Catmull-Rom weights of four neighbours and their derivatives by t."""
    t2 = t * t
    t3 = t2 * t
    w = (0.5 * (-t3 + 2.0 * t2 - t), 0.5 * (3.0 * t3 - 5.0 * t2 + 2.0), 0.5 * (-3.0 * t3 + 4.0 * t2 + t), 0.5 * (t3 - t2))
    d = (0.5 * (-3.0 * t2 + 4.0 * t - 1.0), 0.5 * (9.0 * t2 - 10.0 * t), 0.5 * (-9.0 * t2 + 8.0 * t + 1.0), 0.5 * (3.0 * t2 - 2.0 * t))
    return w, d


@kernel
def height(heights, terrain, x, y):
    """(h, dh/dx, dh/dy) of the terrain at (x, y)."""
    nx, ny = heights.shape
    u = min(max((x - terrain[0]) / terrain[2], 0.0), nx - 1.0)
    v = min(max((y - terrain[1]) / terrain[3], 0.0), ny - 1.0)
    i = min(int(u), nx - 2)
    j = min(int(v), ny - 2)
    wx, dx = _weights(u - i)
    wy, dy = _weights(v - j)
    value = 0.0
    slope_x = 0.0
    slope_y = 0.0
    for a in range(4):
        k = min(max(i + a - 1, 0), nx - 1)
        row = 0.0
        row_y = 0.0
        for b in range(4):
            z = heights[k, min(max(j + b - 1, 0), ny - 1)]
            row += wy[b] * z
            row_y += dy[b] * z
        value += wx[a] * row
        slope_x += dx[a] * row
        slope_y += wx[a] * row_y
    inside_x = 1.0 if terrain[0] < x < terrain[0] + terrain[2] * (nx - 1) else 0.0
    inside_y = 1.0 if terrain[1] < y < terrain[1] + terrain[3] * (ny - 1) else 0.0
    return value, inside_x * slope_x / terrain[2], inside_y * slope_y / terrain[3]


@kernel
def nearest_on_terrain(heights, terrain, p):
    """The terrain's point nearest to ``p``, the normal there and the signed distance: (q, n, distance) as seven numbers."""
    x = p[0]
    y = p[1]
    for _ in range(60):
        h, hx, hy = height(heights, terrain, x, y)
        gap = p[2] - h
        # Stationary where p - q is along (-hx, -hy, 1): x = p_x + gap hx, solved with the slopes of the moment.
        scale = 1.0 / (1.0 + hx * hx + hy * hy)
        step_x = (p[0] - x + gap * hx) * scale
        step_y = (p[1] - y + gap * hy) * scale
        x += step_x
        y += step_y
        if abs(step_x) + abs(step_y) < 1e-14:
            break
    h, hx, hy = height(heights, terrain, x, y)
    scale = 1.0 / sqrt(1.0 + hx * hx + hy * hy)
    n = (-hx * scale, -hy * scale, scale)
    distance = (p[0] - x) * n[0] + (p[1] - y) * n[1] + (p[2] - h) * n[2]
    return (x, y, h, n[0], n[1], n[2], distance)
