"""Rules of the whole repository that no reviewer should have to remember."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from engine.cli.app import app
from engine.cli.reference import reference as cli_reference
from engine.telemetry.reference import reference as metrics_reference
from routes.config import lint
from routes.config import reference as configuration_reference
from routes.config.fields import FIELDS, sections
from routes.section_registry import registered_sections
from routes.systems import SYSTEMS
from tests.unit.source_tree import PACKAGES, ROOT, inside, modules, nodes, tree

if TYPE_CHECKING:
    from collections.abc import Iterator

CODE = (*PACKAGES, "tests", "bench", "tools", "grafana")
TEMPLATES = ROOT / "engine/page/templates"
MAX_LINES = 600
"""From here on a module most likely has a second public noun; below, its length is its own affair."""
ASKING = r"what|whatever|who|whose|whoever|whether|how|where|which|when|why"
VAGUE = re.compile(
    rf"({ASKING}|of|the same|it|its|they|their|this|that|these|those|one|ones|"
    r"somebody|nobody|everything|nothing|as|for|from|to|in|on|with|and|or|so|if)\b",
    re.IGNORECASE,
)
"""First words of a docstring, or of the description of a key or option, that name nothing."""
CLAUSE = re.compile(
    rf"({ASKING})\b|.*\b(what|whatever|whoever|(?:by|for|from|in|let|lets|of|to|with) who)\b", re.IGNORECASE | re.DOTALL
)
"""Texts that begin with a question, or have a clause where the name of a thing belongs: "what is there"."""
IS_NO = re.compile(
    r"(?<!\b[Tt]here )(?<!\bthere (?:can|may) )(?<!\bthere could )\b(?:is|are|was|were|be)\s+no(?:ne)?\b"
    r"(?!\s+(?:longer|more|larger|faster)\b|\s*%})"
)
"""Negation of a noun: "is no number" should be "is not a number"; "there is no number" is plain English."""
ERRORS = re.compile(r"\w*Error|Fault|fault|key_fault|fail")
"""Names of the calls that take the text of an error message."""

OPTIONAL = {"engine.telemetry.otlp": "opentelemetry.sdk"}
"""Modules that need a package which only those install who want what it does."""

HOSTS = {
    "127.0.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "activemq.apache.org",
    "json-schema.org",
    "json.schemastore.org",
    "kafka.eu-west-1.amazonaws.com",
    "keepachangelog.com",
    "pre-commit.com",
    "maven.apache.org",
    "opentelemetry.io",
    "stomp.github.io",
    "www.apache.org",
    "www.w3.org",
}
"""Hosts that files may name: loopback, AWS's services on a machine, XML namespaces, and where a specification is."""


def files() -> list[Path]:
    """Every text file of the project, without what is made or downloaded."""
    skipped = {"__pycache__", "build", "target", "node_modules", "var", "dist", "spark-warehouse"}
    found = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        hidden = path.name == ".git" or any(part.startswith(".") for part in parts[:-1])
        if path.is_file() and not hidden and not skipped.intersection(parts[:-1]):
            found.append(path)
    return found


def test_routes_names_no_key_of_a_section_that_the_engine_brings() -> None:
    brought = [name for name, section in registered_sections().items() if section.settings]
    keys = [row.key for row in FIELDS.fields if row.section in brought and not row.open]
    assert len(keys) > 20
    wrong = [
        f"{name}: {key}"
        for name, path in modules().items()
        if inside(name, "routes")
        for key in keys
        if f'"{key}"' in path.read_text(encoding="utf-8")
    ]
    assert not wrong


def test_no_type_of_a_source_or_sink_is_compared_with_the_name_of_a_system() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for name, path in modules().items()
        if not inside(name, "engine.connectors")
        for node in nodes(path)
        if isinstance(node, ast.Compare)
        and {side.value for side in (node.left, *node.comparators) if isinstance(side, ast.Constant)} & SYSTEMS.keys()
        and any(re.search(r"\btype(\.name)?$", ast.unparse(side)) for side in (node.left, *node.comparators))
    ]
    assert not wrong


def test_a_class_name_is_used_once() -> None:
    """A public name once in the project; a private one once in its folder, and not beside a public one like it."""
    classes = [
        (name, node.name) for name, path in modules().items() for node in nodes(path) if isinstance(node, ast.ClassDef)
    ]
    places: dict[tuple[str, str], list[str]] = {}
    for module, name in classes:
        places.setdefault((module.rpartition(".")[0], name.lstrip("_")), []).append(f"{module}.{name}")
        if not name.startswith("_"):
            places.setdefault(("", name), []).append(f"{module}.{name}")
    assert not [found for found in places.values() if len(found) > 1]


@pytest.mark.parametrize("name", modules())
def test_a_module_has_a_docstring_and_says_what_is_public(name: str) -> None:
    content = tree(modules()[name])
    assert ast.get_docstring(content), "every module starts by saying what it is for"
    names = [
        node.name
        for node in content.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]
    listed = [
        ast.literal_eval(node.value)
        for node in content.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if not names and not listed:
        return
    assert listed, f"no __all__, but public names: {names}"
    assert len(listed) == 1, "__all__ is assigned twice"
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name], reason="make setup-dev installs it")
    imported = import_module(name)
    assert all(hasattr(imported, public) for public in listed[0])


def test_the_public_names_are_those_in_the_documentation_of_the_api() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    tables = dict(re.findall(r"^\| `([\w.]+)` \| (.+) \|$", text, re.MULTILINE))
    assert set(tables) == {
        "engine.claims.bodies",
        "engine.explain",
        "engine.message",
        "engine.router",
        "engine.streams",
        "engine.topologies.state",
        "routes.config",
        "routes.errors",
        "routes.model",
        "routes.predicate",
        "routes.predicate.columns",
        "routes.properties",
    }
    for name, cell in tables.items():
        assert sorted(re.findall(r"`(\w+)`", cell)) == sorted(import_module(name).__all__), name


def test_a_docstring_begins_with_a_noun_or_a_verb() -> None:
    """The docstrings of fields and constants too."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {str(node.value.value).splitlines()[0]}"
        for path in modules().values()
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and VAGUE.match(str(node.value.value))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_description_of_a_key_or_an_option_names_it() -> None:
    texts = {row.key: row.doc for row in FIELDS.fields} | sections() | dict(_help("jms-bridge", get_command(app)))
    assert len(texts) > 300
    wrong = [f"{name}: {text}" for name, text in texts.items() if VAGUE.match(text) or CLAUSE.match(text)]
    assert not wrong, "\n".join(wrong)


def _help(path: str, command: Any) -> Iterator[tuple[str, str]]:
    """The help of a command, of those below it and of all their arguments and options, by their names."""
    yield path, command.help
    for parameter in command.params:
        yield f"{path} {parameter.name}", parameter.help or ""
    for name, child in getattr(command, "commands", {}).items():
        yield from _help(f"{path} {name}", child)


def test_error_messages_and_pages_name_their_subjects() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in modules().values()
        for line, text in _messages(path)
        if CLAUSE.match(text)
    ]
    wrong += [path.name for path in TEMPLATES.glob("*.html") if CLAUSE.match(path.read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)


def _messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each error message in a file: in a call that makes an error, or in `msg` before it."""
    for node in nodes(path):
        texts: list[ast.expr] = []
        if isinstance(node, ast.Call) and ERRORS.fullmatch(ast.unparse(node.func).rpartition(".")[2]):
            texts = node.args[:1]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("msg", "message"):
            texts = [node.value]
        for text in texts:
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            written = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
            yield text.lineno, written


def test_no_text_negates_a_noun() -> None:
    paths = [*modules().values(), *TEMPLATES.glob("*.html"), *(ROOT / "jvm").rglob("*.java")]
    wrong = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found[0]}"
        for path in paths
        for text in [path.read_text(encoding="utf-8")]
        for found in IS_NO.finditer(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_grows_beyond_one_noun() -> None:
    paths = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    assert not [str(path) for path in paths if path.read_text(encoding="utf-8").count("\n") > MAX_LINES]


def test_every_test_and_benchmark_says_what_it_is_for() -> None:
    paths = [path for folder in CODE[2:] for path in (ROOT / folder).rglob("*.py")]
    begins = re.compile(r'(?:#.*\n)*"""\S')  # To parse all these files takes seconds.
    assert not [str(path) for path in paths if not begins.match(path.read_text(encoding="utf-8"))]


def test_the_shipped_configuration_has_no_fault_and_no_warning() -> None:
    assert [str(fault) for fault in lint(ROOT / "engine/cli/templates/jms-bridge.properties").faults] == []


@pytest.mark.parametrize(
    ("page", "made", "by"),
    [
        ("configuration.md", configuration_reference, "routes.config"),
        ("metrics.md", metrics_reference, "engine.telemetry.reference"),
        ("cli.md", cli_reference, "engine.cli.reference"),
    ],
)
def test_generated_documentation_is_current(page: str, made: object, by: str) -> None:
    assert callable(made)
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == made(), f"run `python -m {by} > docs/{page}`"


def test_no_file_names_a_path_of_some_machine_or_a_host_on_the_network() -> None:
    # In two parts, so that this file does not name them either.
    path = re.compile(r"(?<![\w.<~$}-])/(?:ro" r"ot|ho" r"me|wo" r"rk|Us" r"ers)/\w")
    host = re.compile(r"\b[a-z][a-z0-9+.-]*://([A-Za-z0-9.-]+)")
    wrong = []
    for file in files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        hosts = {found for found in host.findall(text) if found not in HOSTS and not _reserved(found)}
        wrong += [f"{file.relative_to(ROOT)}: {found}" for found in sorted(hosts.union(path.findall(text)))]
    assert not wrong


def _reserved(host: str) -> bool:
    """Names for examples (RFC 2606), of services in a cluster of Kubernetes, and without a dot."""
    return host.endswith((".example", ".example.com", ".example.org", ".invalid", ".svc", ".test")) or "." not in host


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "adr"
    index = (folder / "README.md").read_text(encoding="utf-8").replace("\n  ", " ")
    lines = [
        f"- [{page.name[:4]}]({page.name}) {page.read_text(encoding='utf-8').splitlines()[0].partition('. ')[2]}"
        for page in sorted(folder.glob("0*.md"))
    ]
    assert [line for line in index.splitlines() if line.startswith("- ")] == lines
