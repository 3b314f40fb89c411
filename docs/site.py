"""MkDocs hooks: pages and pictures outside docs/ become part of the site.

README.md is the front page. Links are written for readers of the repository; here they are rewritten for the site.
Examples in docstrings (lines that begin with >>>) are shown as code.
"""

from __future__ import annotations

import re
from pathlib import Path

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
OTHERS = ("examples/*.py", "results/*/figures/*.png", "LICENSE")  # files that pages link to
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


class Examples(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        shown: list[str] = []
        inside = False
        for line in [*lines, ""]:
            if not inside and line.startswith(">>> "):
                shown += ["", "```pycon"]
                inside = True
            elif inside and not line.strip():
                shown.append("```")
                inside = False
            shown.append(line)
        return shown


class ShowExamples(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(Examples(md), "examples", 40)  # before fences are read


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(ShowExamples())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, name in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / source)))
    for pattern in OTHERS:
        for path in sorted(ROOT.glob(pattern)):
            files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    name = page.file.src_uri
    source = next((ROOT / own for own, there in PAGES.items() if there == name), ROOT / "docs" / name)
    up = "../" * name.count("/")

    def on_site(match: re.Match[str]) -> str:
        target = (source.parent / match.group(1)).resolve().relative_to(ROOT)
        there = PAGES.get(str(target)) or str(target).removeprefix("docs/")
        return f"]({up}{there}"

    return LINK.sub(on_site, markdown)
