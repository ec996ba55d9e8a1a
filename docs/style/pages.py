"""Adds the pages that the examples wrote (make docs runs them) to the site, as pages/NAME.html, and the figures of the studies to their page; sets formulas: blocks of LaTeX
become MathML, which needs no script."""
import re
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

PAGES = Path("out/gallery/out")
FIGURES = Path("docs/studies")
#: name, paper, place in it and claim, of a row of the table of studies
STUDY = re.compile(r"^\| `(\w+)` \| (.+?), (.+?) \| (.+) \|$", re.MULTILINE)
FORMULA = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config) -> Files:
    for path in sorted(PAGES.glob("*.html")):
        files.append(File.generated(config, f"pages/{path.name}", abs_src_path=str(path.resolve())))
    return files


def figures(table: str) -> str:
    """A card for every study in a table whose figure is there, by paper."""
    papers: dict[str, str] = {}
    for name, paper, place, claim in STUDY.findall(table):
        if (FIGURES / f"{name}.png").exists():
            card = f"<div markdown>\n![{claim}](studies/{name}.png){{ .whole }}\n\n**{place[0].upper()}{place[1:]}**: `{name}`\n</div>\n"
            papers[paper] = f"{papers.get(paper, '')}\n{card}"
    return "".join(f'\n### {paper}\n\n<div class="gallery" markdown>\n{cards}\n</div>\n' for paper, cards in papers.items())


def on_page_markdown(markdown: str, page, **_) -> str:
    if page.file.src_uri == "studies.md":
        markdown += figures(markdown)
    return FORMULA.sub(lambda found: f'<div class="formula">{convert(found.group(1), display="block")}</div>', markdown)
