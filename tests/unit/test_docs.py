"""The documentation says what is there: its links lead somewhere, and its lists are complete."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from routes.config.fields import FIELDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "grafana/README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = ("engine", "routes")
FOLDERS = ("bench/", "deploy/", "docs/", "engine/", "examples/", "grafana/", "jvm/", "routes/", "tests/", "tools/")
MAX_COLUMNS = 120
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@cache
def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a page's headings; of equal ones each after the first has a number."""
    found: Counter[str] = Counter()
    made = []
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")
        made.append(f"{anchor}-{found[anchor]}" if found[anchor] else anchor)
        found[anchor] += 1
    return frozenset(made)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", prose(page)):
        file = page.parent / target if target else page
        if "://" not in target and (not file.exists() or (anchor and anchor not in anchors(file))):
            wrong.append(f"{target}#{anchor}" if anchor else target)
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_lines_of_prose_are_wrapped(page: Path) -> None:
    lines = [line for line in prose(page).splitlines() if not re.match(r" *\|", line)]
    # A line may be one word, such as a link.
    assert [line for line in lines if len(line) > MAX_COLUMNS and " " in line.strip(" -")] == []


def test_names_of_modules_and_paths_in_the_documentation_exist() -> None:
    wrong = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`([\w./-]+)(?:\(…?\))?`", prose(page))
        if not _exists(name)
    ]
    assert not wrong


def _exists(name: str) -> bool:
    """False if a text is the name of a module, a Java class or a path, and the repository has none of that name."""
    if re.fullmatch(r"jmsbridge(\.[a-z]+)*\.[A-Z]\w*", name):
        return any(ROOT.glob(f"jvm/*/src/main/java/{name.replace('.', '/')}.java"))
    if name.startswith(FOLDERS):
        return (ROOT / name).exists() or _is_in_module(name)
    is_module = re.fullmatch(r"(engine|routes)(\.\w+)+", name) and not name.endswith((".json", ".yaml"))
    return not is_module or FIELDS.find(name) is not None or _is_in_module(name)


def _is_in_module(name: str) -> bool:
    place, parts = ROOT, re.split(r"[./]", name)
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    file = place / f"{parts.pop(0)}.py" if parts and (place / f"{parts[0]}.py").exists() else place / "__init__.py"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return all(re.search(rf"\b{part}\b", text) for part in parts)


def test_the_layout_lists_every_folder_and_nothing_else() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    listing = page.partition("\n## Layout\n\n```\n")[2].partition("```")[0]
    listed: list[str] = []
    folder = ""
    for indent, names in re.findall(r"^( {0,2})([^\s,]+(?:, [^\s,]+)*)", listing, re.MULTILINE):
        listed += [f"{folder if indent else ''}{name}".rstrip("/") for name in names.split(", ")]
        folder = folder if indent else names
    assert [path for path in listed if not (ROOT / path).exists() and not (ROOT / f"{path}.py").exists()] == []
    inside = {f"{package}/{path.parent.name}" for package in PACKAGES for path in (ROOT / package).glob("*/*.py")}
    assert sorted({*inside, *(folder.rstrip("/") for folder in FOLDERS)} - set(listed)) == []


def test_the_exit_codes_are_those_of_the_errors() -> None:
    codes = {0, 130}
    for path in [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]:
        found = re.findall(r"^    exit_code(?:: ClassVar\[int\])? = (\d+)$", path.read_text(encoding="utf-8"), re.M)
        codes |= set(map(int, found))
    table = prose(ROOT / "docs/operations.md").partition("### Exit codes\n")[2].partition("\n#")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == sorted(codes)
