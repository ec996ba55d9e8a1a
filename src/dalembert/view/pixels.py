"""Kernels of the software renderer: triangles into a depth buffer, and pixels into light and shadow. The look is the page's."""
from __future__ import annotations

from math import floor, sqrt

import numpy as np

from dalembert.kernels import inline, kernel

GAMMA = 2.0  # of the screen, near enough, and a square root is quick
BLOCK = 8  # points of a shadow map, each way, that are looked at together


@kernel
def fill(points, normals, faces, label, nearness, labels, directions):
    """Draw triangles where they are nearer than what is there.

    points: (n, 3) column, row, and a nearness that is linear on the picture (1/distance in perspective; not above zero: behind
    the camera). Writes ``nearness`` (h, w), and where they have a size ``labels`` (h, w) and normals ``directions`` (h, w, 3).
    """
    height, width = nearness.shape
    colour = labels.shape[0] > 0
    for f in range(faces.shape[0]):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        if points[a, 2] <= 0.0 or points[b, 2] <= 0.0 or points[c, 2] <= 0.0:
            continue
        ax, ay, bx, by, cx, cy = points[a, 0], points[a, 1], points[b, 0], points[b, 1], points[c, 0], points[c, 1]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if area == 0.0:
            continue
        scale = 1.0 / area
        first_row = max(0, int(np.ceil(min(ay, min(by, cy)))))
        last_row = min(height - 1, int(np.floor(max(ay, max(by, cy)))))
        first_column = max(0, int(np.ceil(min(ax, min(bx, cx)))))
        last_column = min(width - 1, int(np.floor(max(ax, max(bx, cx)))))
        for row in range(first_row, last_row + 1):
            for column in range(first_column, last_column + 1):
                u = ((bx - column) * (cy - row) - (by - row) * (cx - column)) * scale
                v = ((cx - column) * (ay - row) - (cy - row) * (ax - column)) * scale
                w = 1.0 - u - v
                if u < 0.0 or v < 0.0 or w < 0.0:
                    continue
                near = u * points[a, 2] + v * points[b, 2] + w * points[c, 2]
                if near > nearness[row, column]:
                    nearness[row, column] = near
                    if colour:
                        labels[row, column] = label
                        for k in range(3):
                            directions[row, column, k] = u * normals[a, k] + v * normals[b, k] + w * normals[c, k]


@kernel
def coarsen(shadows, coarse):
    """The nearest of each square of ``BLOCK`` points of a shadow map and of those around it that are looked at together."""
    size = shadows.shape[0]
    for a in range(coarse.shape[0]):
        for b in range(coarse.shape[1]):
            most = 0.0
            for i in range(max(0, BLOCK * a - 2), min(size, BLOCK * a + BLOCK + 2)):
                for j in range(max(0, BLOCK * b - 2), min(size, BLOCK * b + BLOCK + 2)):
                    most = max(most, shadows[i, j])
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


@kernel
def shade(nearness, labels, directions, colours, picture, eye, axes, focal, shadows, coarse, lamp, light, background, ground, bias):
    """Colour every pixel that shows something, or the floor, or the air.

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
            u, v = (column - 0.5 * width) / focal, (0.5 * height - row) / focal
            # the ray of this pixel, of length one along the view
            dx = u * axes[0, 0] + v * axes[1, 0] + axes[2, 0]
            dy = u * axes[0, 1] + v * axes[1, 1] + axes[2, 1]
            dz = u * axes[0, 2] + v * axes[1, 2] + axes[2, 2]
            near = nearness[row, column]
            hit = (ground[0] - eye[2]) / dz if dz < 0.0 and eye[2] > ground[0] else -1.0
            if near > 0.0 and not (hit > 0.0 and hit * near < 1.0 - 1e-9):
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
                for k in range(3):
                    ambient = (0.26 - 0.01 * k) * (1.0 - up) + (0.46 + 0.02 * k + (0.02 if k == 2 else 0.0)) * up
                    value = colours[labels[row, column], k] * (ambient + 0.62 * key + front) + 0.12 * free * glance
                    picture[row, column, k] = sqrt(min(value - 0.12 * value * value, 1.0))  # white keeps its shades
                continue
            for k in range(3):
                picture[row, column, k] = background[k]
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
                    dim = 0.74 + 0.26 * light_at(x, y, ground[0], shadows, coarse, lamp)
                    for k in range(3):
                        base = (0.905 + 0.01 * k + (0.005 if k == 2 else 0.0)) * (1.0 - ink) + (0.72 + 0.02 * k + (0.01 if k == 2 else 0.0)) * ink
                        picture[row, column, k] = seen * base * dim + (1.0 - seen) * background[k]


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
