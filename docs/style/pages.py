"""Adds the pages that the examples wrote (make gallery) to the site, as pages/NAME.html."""
from pathlib import Path

from mkdocs.structure.files import File, Files

PAGES = Path("out/gallery/out")


def on_files(files: Files, config) -> Files:
    for path in sorted(PAGES.glob("*.html")):
        files.append(File.generated(config, f"pages/{path.name}", abs_src_path=str(path.resolve())))
    return files
