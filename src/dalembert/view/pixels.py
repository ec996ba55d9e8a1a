"""Kernels of the software renderer: triangles into a depth buffer, and pixels into light and shadow. The look is the page's."""
from __future__ import annotations

from math import floor, sqrt

import numpy as np

from dalembert.kernels import inline, kernel

GAMMA = 2.0  # of the screen, near enough, and a square root is quick
BLOCK = 8  # points of a shadow map, each way, that are looked at together


@kernel
def place(vertices, normals, owners, poses, points, turned):
    """Vertices (n, 3) and normals (n, 3) in the world, from those of their owners: poses (owners, 8) with a stretch along z; owner -1 is the world."""
    for i in range(vertices.shape[0]):
        x, y, z = vertices[i, 0], vertices[i, 1], vertices[i, 2]
        a, b, c = normals[i, 0], normals[i, 1], normals[i, 2]
        k = owners[i]
        if k >= 0:
            s, p, q, r = poses[k, 3], poses[k, 4], poses[k, 5], poses[k, 6]
            z = z * poses[k, 7]
            # v + 2 s (w x v) + 2 w x (w x v) for a unit quaternion (s, w)
            t0, t1, t2 = 2.0 * (q * z - r * y), 2.0 * (r * x - p * z), 2.0 * (p * y - q * x)
            x, y, z = x + s * t0 + q * t2 - r * t1 + poses[k, 0], y + s * t1 + r * t0 - p * t2 + poses[k, 1], z + s * t2 + p * t1 - q * t0 + poses[k, 2]
            t0, t1, t2 = 2.0 * (q * c - r * b), 2.0 * (r * a - p * c), 2.0 * (p * b - q * a)
            a, b, c = a + s * t0 + q * t2 - r * t1, b + s * t1 + r * t0 - p * t2, c + s * t2 + p * t1 - q * t0
        points[i, 0], points[i, 1], points[i, 2] = x, y, z
        turned[i, 0], turned[i, 1], turned[i, 2] = a, b, c


@kernel
def project(points, eye, axes, focal, height, width, seen):
    """Pixel column, pixel row and 1 / distance (zero: behind the camera) of points (n, 3) for a camera with axes right, up and back."""
    for i in range(points.shape[0]):
        x, y, z = points[i, 0] - eye[0], points[i, 1] - eye[1], points[i, 2] - eye[2]
        depth = -(axes[2, 0] * x + axes[2, 1] * y + axes[2, 2] * z)
        near = 1.0 / depth if depth > 1e-9 else 0.0
        seen[i, 0] = 0.5 * width + focal * (axes[0, 0] * x + axes[0, 1] * y + axes[0, 2] * z) * near
        seen[i, 1] = 0.5 * height - focal * (axes[1, 0] * x + axes[1, 1] * y + axes[1, 2] * z) * near
        seen[i, 2] = near


@inline
def span(first, last, value, slope, per_slope):
    """The columns from first to last at which value + slope column is not below zero, but for rounding; per_slope: 1 / slope."""
    if slope > 0.0:
        return max(first, int(np.ceil(min(-value * per_slope - 1e-6, last + 1.0)))), last
    if slope < 0.0:
        return first, min(last, int(np.floor(max(-value * per_slope + 1e-6, first - 1.0))))
    return first, (last if value >= 0.0 else first - 1)


@kernel
def fill(points, normals, faces, names, nearness, labels, directions):
    """Draw triangles where they are nearer than what is there.

    points: (n, 3) column, row, and a nearness that is linear on the picture (1/distance in perspective; not above zero: behind
    the camera). names (m,): labels of the faces. Writes ``nearness`` (h, w), and where they have a size ``labels`` (h, w) and
    normals ``directions`` (h, w, 3).
    """
    height, width = nearness.shape
    colour = labels.shape[0] > 0
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        if points[a, 2] <= 0.0 or points[b, 2] <= 0.0 or points[c, 2] <= 0.0:
            continue
        ax, ay, bx, by, cx, cy = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
        first_row = max(0, int(np.ceil(max(min(ay, min(by, cy)), -1.0))))
        last_row = min(height - 1, int(np.floor(min(max(ay, max(by, cy)), 1.0 * height))))
        first_column = max(0, int(np.ceil(max(min(ax, min(bx, cx)), -1.0))))
        last_column = min(width - 1, int(np.floor(min(max(ax, max(bx, cx)), 1.0 * width))))
        if first_row > last_row or first_column > last_column:
            continue
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0:
            continue
        scale = 1.0 / area
        # shares u, v, w of the corners grow by these from column to column
        du, dv = (by - cy) * scale, (cy - ay) * scale
        dw = -du - dv
        per_u, per_v, per_w = 1.0 / du, 1.0 / dv, 1.0 / dw
        far, from_a, from_b = points[c, 2], points[a, 2] - points[c, 2], points[b, 2] - points[c, 2]
        step = du * from_a + dv * from_b
        for row in range(first_row, last_row + 1):
            u = (bx * (cy - row) - (by - row) * cx) * scale
            v = (cx * (ay - row) - (cy - row) * ax) * scale
            low, high = span(first_column, last_column, u, du, per_u)
            low, high = span(low, high, v, dv, per_v)
            low, high = span(low, high, 1.0 - u - v, dw, per_w)
            start = far + u * from_a + v * from_b
            for column in range(low, high + 1):
                near = np.float32(start + column * step)
                if near > nearness[row, column]:
                    nearness[row, column] = near
                    if colour:
                        labels[row, column] = names[f]
                        share_a, share_b = u + column * du, v + column * dv
                        for k in range(3):
                            directions[row, column, k] = share_a * normals[a, k] + share_b * normals[b, k] + (1.0 - share_a - share_b) * normals[c, k]


@kernel
def coarsen(shadows, squares, coarse):
    """The nearest of each square of ``BLOCK`` points of a shadow map, and of that and those around it."""
    for a in range(squares.shape[0]):
        for b in range(squares.shape[1]):
            most = shadows[BLOCK * a, BLOCK * b]
            for i in range(BLOCK * a, BLOCK * a + BLOCK):
                for j in range(BLOCK * b, BLOCK * b + BLOCK):
                    most = max(most, shadows[i, j])
            squares[a, b] = most
    for a in range(squares.shape[0]):
        for b in range(squares.shape[1]):
            most = squares[a, b]
            for i in range(max(0, a - 1), min(squares.shape[0], a + 2)):
                for j in range(max(0, b - 1), min(squares.shape[1], b + 2)):
                    most = max(most, squares[i, j])
            coarse[a, b] = most


@inline
def light_at(x, y, z, shadows, coarse, lamp):
    """Part of the light that reaches a point: the share of a square of the shadow map that lies no nearer to the light.

    Where nothing around is nearer, which ``coarse`` knows, all of it. lamp (4, 4): rows to column, row and nearness in the map; the last row's first number is the slack in nearness.
    """
    size = shadows.shape[0]
    column = lamp[0, 0] * x + lamp[0, 1] * y + lamp[0, 2] * z + lamp[0, 3]
    row = lamp[1, 0] * x + lamp[1, 1] * y + lamp[1, 2] * z + lamp[1, 3]
    near = lamp[2, 0] * x + lamp[2, 1] * y + lamp[2, 2] * z + lamp[2, 3] + lamp[3, 0]
    i, j = floor(row), floor(column)
    if i < 1 or j < 1 or i >= size - 2 or j >= size - 2:
        return 1.0
    if coarse[i // BLOCK, j // BLOCK] <= near:
        return 1.0
    free = 0.0
    for r in range(4):  # a square of 3 by 3 points that slides over the map
        high = 1.0 - (row - i) if r == 0 else (row - i if r == 3 else 1.0)
        for c in range(4):
            if shadows[i - 1 + r, j - 1 + c] <= near:
                free += high * (1.0 - (column - j) if c == 0 else (column - j if c == 3 else 1.0))
    return free / 9.0


@inline
def line(p, width):
    """How much of a line at the whole numbers covers a place that is ``width`` wide."""
    away = abs(p - floor(p + 0.5))
    return max(0.0, 1.0 - away / max(width, 1e-12)) * max(0.0, min(1.0, (0.9 - width) / 0.6))


@inline
def is_even(nearness, labels, directions, row, column):
    """Whether two by two pixels from here show one smooth surface, or none of them any: one colour is enough for them then."""
    height, width = nearness.shape
    if row + 1 >= height or column + 1 >= width:
        return False
    there = nearness[row, column] > 0.0
    for k in range(1, 4):
        i, j = row + k // 2, column + k % 2
        if (nearness[i, j] > 0.0) != there:
            return False
        if there:
            apart = abs(directions[i, j, 0] - directions[row, column, 0]) + abs(directions[i, j, 1] - directions[row, column, 1]) + abs(directions[i, j, 2] - directions[row, column, 2])
            if labels[i, j] != labels[row, column] or apart > 0.1 or abs(nearness[i, j] - nearness[row, column]) > 0.01 * nearness[row, column]:
                return False
    return True


@inline
def colour_at(row, column, nearness, labels, directions, colours, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias):
    """Red, green and blue of a pixel that shows something, or the floor, or the air."""
    height, width = nearness.shape
    u, v = (column - 0.5 * width) / focal, (0.5 * height - row) / focal
    # the ray of this pixel, of length one along the view
    dx = u * axes[0, 0] + v * axes[1, 0] - axes[2, 0]
    dy = u * axes[0, 1] + v * axes[1, 1] - axes[2, 1]
    dz = u * axes[0, 2] + v * axes[1, 2] - axes[2, 2]
    near = nearness[row, column]
    hit = (ground[0] - eye[2]) / dz if dz < 0.0 and eye[2] > ground[0] else -1.0
    if near > 0.0 and not (hit > 0.0 and hit * near < 1.0 - 1e-6):
        n0, n1, n2 = directions[row, column, 0], directions[row, column, 1], directions[row, column, 2]
        size = max(sqrt(n0 * n0 + n1 * n1 + n2 * n2), 1e-12)
        away = sqrt(dx * dx + dy * dy + dz * dz)
        ex, ey, ez = -dx / away, -dy / away, -dz / away
        if n0 * ex + n1 * ey + n2 * ez < 0.0:
            size = -size
        n0, n1, n2 = n0 / size, n1 / size, n2 / size
        x, y, z = eye[0] + dx / near, eye[1] + dy / near, eye[2] + dz / near
        free = light_at(x + bias * n0, y + bias * n1, z + bias * n2, shadows, coarse, lamp)
        h0, h1, h2 = light[0] + ex, light[1] + ey, light[2] + ez
        glance = max((n0 * h0 + n1 * h1 + n2 * h2) / max(sqrt(h0 * h0 + h1 * h1 + h2 * h2), 1e-12), 0.0)
        for _ in range(6):
            glance *= glance  # to the power 64
        key = max(n0 * light[0] + n1 * light[1] + n2 * light[2], 0.0) * free
        front = 0.1 * max(n0 * ex + n1 * ey + n2 * ez, 0.0)
        up = 0.5 + 0.5 * n2
        label, rest, shine = labels[row, column], 0.62 * key + front, 0.12 * free * glance
        return (
            tone(colours[label, 0] * (0.26 * (1.0 - up) + 0.46 * up + rest) + shine),
            tone(colours[label, 1] * (0.25 * (1.0 - up) + 0.48 * up + rest) + shine),
            tone(colours[label, 2] * (0.24 * (1.0 - up) + 0.52 * up + rest) + shine),
        )
    if hit > 0.0:
        x, y = eye[0] + hit * dx, eye[1] + hit * dy
        far = sqrt((x - ground[2]) ** 2 + (y - ground[3]) ** 2) / ground[4]
        t = max(0.0, min(1.0, (far - 0.25) / 0.7))
        seen = 1.0 - t * t * (3.0 - 2.0 * t)
        if seen > 0.0:
            across = hit / (focal * ground[1])  # a pixel's width on the floor, in lines
            along = across * sqrt(dx * dx + dy * dy + dz * dz) / max(-dz, 1e-9)
            wide = 1.8 * sqrt(across * along)
            ink = max(0.35 * max(line(x / ground[1], wide), line(y / ground[1], wide)),
                      0.6 * max(line(0.2 * x / ground[1], 0.23 * wide), line(0.2 * y / ground[1], 0.23 * wide)))
            dim = seen * (0.74 + 0.26 * light_at(x, y, ground[0], shadows, coarse, lamp))
            return (
                dim * (0.905 - 0.185 * ink) + (1.0 - seen) * background[0],
                dim * (0.915 - 0.175 * ink) + (1.0 - seen) * background[1],
                dim * (0.93 - 0.16 * ink) + (1.0 - seen) * background[2],
            )
    return background[0], background[1], background[2]


@inline
def tone(value):
    """What the screen shows of an amount of light: white keeps its shades."""
    return sqrt(min(value - 0.12 * value * value, 1.0))


@kernel
def shade(nearness, labels, directions, colours, picture, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias):
    """Colour every pixel of a picture (h, w, 3).

    colours (parts, 3), linear; ground: height of the floor (NaN: none), distance of its lines, its middle (x, y) and its reach.
    """
    height, width = nearness.shape
    for row in range(height):
        for column in range(width):
            first_row, first_column = row - row % 2, column - column % 2
            if (row > first_row or column > first_column) and is_even(nearness, labels, directions, first_row, first_column):
                for k in range(3):
                    picture[row, column, k] = picture[first_row, first_column, k]
                continue
            red, green, blue = colour_at(row, column, nearness, labels, directions, colours, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias)
            picture[row, column, 0], picture[row, column, 1], picture[row, column, 2] = red, green, blue


@kernel
def shade_small(nearness, labels, directions, colours, small, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias):
    """The mean of two by two pixels each, as bytes (h / 2, w / 2, 3): what ``shade`` and ``shrink`` do, without a picture between them."""
    for row in range(small.shape[0]):
        for column in range(small.shape[1]):
            samples = 1 if is_even(nearness, labels, directions, 2 * row, 2 * column) else 4
            red, green, blue = 0.0, 0.0, 0.0
            for k in range(samples):
                r, g, b = colour_at(2 * row + k // 2, 2 * column + k % 2, nearness, labels, directions, colours, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias)
                red, green, blue = red + r, green + g, blue + b
            share = 255.0 / samples
            small[row, column, 0] = np.uint8(min(max(0.5 + share * red, 0.0), 255.0))
            small[row, column, 1] = np.uint8(min(max(0.5 + share * green, 0.0), 255.0))
            small[row, column, 2] = np.uint8(min(max(0.5 + share * blue, 0.0), 255.0))


@kernel
def shade_over(nearness, labels, directions, colours, picture, solid, opacity, hidden, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias):
    """Lay a layer over a picture where it shows something: with its opacity where it is no further than ``solid`` (h, w), else with ``hidden``."""
    for row in range(nearness.shape[0]):
        for column in range(nearness.shape[1]):
            alpha = opacity if nearness[row, column] >= solid[row, column] else hidden
            if nearness[row, column] > 0.0 and alpha > 0.0:
                red, green, blue = colour_at(row, column, nearness, labels, directions, colours, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias)
                picture[row, column, 0] += alpha * (red - picture[row, column, 0])
                picture[row, column, 1] += alpha * (green - picture[row, column, 1])
                picture[row, column, 2] += alpha * (blue - picture[row, column, 2])


@kernel
def shrink(picture, finer, small):
    """The mean of ``finer`` x ``finer`` pixels, as bytes."""
    share = 255.0 / finer**2
    for row in range(small.shape[0]):
        for column in range(small.shape[1]):
            for k in range(3):
                total = 0.5
                for r in range(finer):
                    for c in range(finer):
                        total += share * picture[finer * row + r, finer * column + c, k]
                small[row, column, k] = np.uint8(min(max(total, 0.0), 255.0))
