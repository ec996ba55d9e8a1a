"""Adds the pages that the examples wrote (make gallery) to the site, as pages/NAME.html, and sets formulas: blocks of LaTeX become MathML, which needs no script."""
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

PAGES = Path("out/gallery/out")
FORMULA = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config) -> Files:
    for path in sorted(PAGES.glob("*.html")):
        files.append(File.generated(config, f"pages/{path.name}", abs_src_path=str(path.resolve())))
    return files


def on_page_markdown(markdown: str, **_) -> str:
    return FORMULA.sub(lambda found: f'<div class="formula">{convert(found.group(1), display="block")}</div>', markdown)
