"""What an MJCF file and those that it includes may open, looked through before MuJoCo does."""
from __future__ import annotations

from pathlib import Path

from dalembert.errors import ModelError
from dalembert.io.safety import check_counts, inside, read_model, scan_xml

FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
DEEPEST_INCLUDE = 8


def check_files(path: Path, root: Path, home: Path, depth: int = 0) -> None:
    """Refuse files outside of ``root`` and absurd counts. ``home``: the folder that names count from."""
    elements = scan_xml(read_model(path), path)
    check_counts(elements, path)
    folders = {"meshdir": "", "texturedir": ""}
    for element in elements:
        if element.tag == "compiler":
            for name in folders:
                folders[name] = element.attributes.get(name, element.attributes.get("assetdir", folders[name]))
    for element in elements:
        names = [value for key, value in element.attributes.items() if key.startswith("file") and value]
        for name in names:
            if element.tag == "include":
                if depth >= DEEPEST_INCLUDE:
                    raise ModelError(f"{path} includes files more than {DEEPEST_INCLUDE} deep, or in a circle")
                check_files(inside(root, home, name, path), root, home, depth + 1)
            else:
                inside(root, home / folders.get(FOLDERS.get(element.tag, ""), ""), name, path)
