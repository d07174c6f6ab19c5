"""Rules of the whole repository that no reviewer should have to remember."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
from routes.section_registry import SECTIONS, registered_sections
from routes.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "routes")
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

RUNNING = ("engine.spark", "engine.router", "engine.topologies", "engine.streams", "engine.cli", "engine.supervision")
"""What runs Spark, the bridge or a command."""

ABOVE = {
    "routes": ("engine",),
    "routes.errors": ("routes",),
    "routes.immutable": ("routes",),
    "routes.properties": (
        "routes.config",
        "routes.keys",
        "routes.systems",
        "routes.errors",
        "routes.model",
        "routes.predicate",
        "routes.targets",
    ),
    "routes.keys": ("routes.config", "routes.model", "routes.systems"),
    "routes.systems": ("routes.config", "routes.model"),
    "routes.model": ("routes.config",),
    "routes.targets": ("routes.config", "routes.keys", "routes.model", "routes.systems"),
    "routes.sections": ("routes.config", "routes.model"),
    "routes.section_registry": ("routes.config", "routes.model", "routes.systems"),
    "routes.predicate": ("routes.config", "routes.keys", "routes.model", "routes.systems"),
    "engine.errors": ("engine",),
    "engine.topologies.runtime": (
        "engine.router",
        "engine.connectors",
        "engine.kafka.journal",
        "engine.page",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.router.plan": (
        "engine.spark",
        "engine.kafka",
        "engine.delivery",
        "engine.connectors",
        "engine.supervision",
    ),
    "engine.router": (
        "engine.topologies.runtime",
        "engine.delivery",
        "engine.connectors",
        "engine.kafka.journal",
        "engine.page",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.spark": (
        "engine.topologies",
        "engine.streams",
        "engine.router",
        "engine.delivery",
        "engine.connectors",
        "engine.kafka.journal",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.delivery": RUNNING,
    "engine.claims": (
        "engine.connectors",
        "engine.dead_letters",
        "engine.delivery",
        "engine.find",
        "engine.kafka",
        "engine.page",
        "engine.router",
        "engine.topologies",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.connectors": ("engine.delivery", *RUNNING),
    "engine.jms_values": ("engine.delivery", "engine.connectors", "engine.kafka.journal", *RUNNING),
    "engine.trace_context": (
        "engine.delivery",
        "engine.connectors",
        "engine.kafka.journal",
        "engine.telemetry",
        *RUNNING,
    ),
    "engine.kafka": (
        "engine.delivery",
        "engine.spark",
        "engine.router",
        "engine.topologies",
        "engine.streams",
        "engine.connectors",
        "engine.dead_letters",
        "engine.find",
        "engine.page",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.openid": ("engine.doctor", "engine.kafka", "engine.page", "engine.telemetry", "engine.supervision"),
    "engine.embedded": (
        "engine.delivery",
        "engine.spark",
        "engine.router",
        "engine.connectors",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.looks": ("engine.dead_letters", "engine.find", "engine.page", "engine.cli", "engine.supervision"),
    "engine.rerouting": ("engine.page", "engine.cli", "engine.supervision"),
    "engine.page": (
        "engine.spark",
        "engine.router",
        "engine.topologies.library",
        "engine.topologies.runtime",
        "engine.streams",
        "engine.connectors",
        "engine.kafka.journal",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.find": (
        "engine.router.plan",
        "engine.topologies",
        "engine.streams",
        "engine.delivery",
        "engine.connectors",
        "engine.kafka.journal",
        "engine.page",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.backup": ("engine.router", "engine.page", "engine.cli", "engine.supervision"),
    "engine.doctor": (
        "engine.spark",
        "engine.router",
        "engine.topologies.library",
        "engine.streams",
        "engine.page",
        "engine.cli",
        "engine.supervision",
    ),
    "engine.telemetry": ("engine.dead_letters", "engine.find", "engine.page", "engine.supervision", "engine.cli"),
    "engine": ("engine.cli",),
}
"""What a package must not import, itself and what is below it excepted. Imports point one way, docs/architecture.md."""

ONLY = {
    "engine.record": ("routes.immutable",),
    "engine.message": ("engine.record", "routes.immutable", "routes.predicate", "routes.properties"),
    "engine.streams": ("engine.topologies.library",),
    "engine.topologies.library": (
        "engine.errors",
        "engine.jars",
        "engine.record",
        "engine.limits",
        "engine.spark.shared_session",
        "routes.errors",
    ),
}
"""The only packages of the project that a package may import, besides itself."""

LIBRARIES = {
    "fcntl": ("engine.file_lock", "engine.connectors.jms_client.process"),
    "pyspark": ("routes.predicate", "engine.router", "engine.schemas", "engine.spark", "engine.topologies"),
    "confluent_kafka": ("engine.kafka",),
    "stomp": ("engine.connectors.stomp",),
    "nats": ("engine.connectors.nats",),
    "typer": ("engine.cli",),
    "rich": ("engine.cli", "engine.supervision.progress"),
    "lark": ("routes.predicate",),
    "javaproperties": ("routes.config",),
    "yaml": ("engine.route_tests",),
    "jinja2": ("engine.page.render",),
    "joserfc": ("engine.openid",),
    "starlette": ("engine.page", "engine.telemetry"),
    "uvicorn": ("engine.telemetry",),
    "opentelemetry": ("engine.telemetry.otlp",),
}
"""The only places that know a library."""

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


@cache
def modules() -> dict[str, Path]:
    """Every module of the packages by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@cache
def imports(name: str) -> frozenset[str]:
    """What a module imports: at its top, for types only, and within functions."""
    found: set[str] = set()
    for node in nodes(modules()[name]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            source = node.module or ""
            found |= {
                f"{source}.{alias.name}" if f"{source}.{alias.name}" in modules() else source for alias in node.names
            }
    return frozenset(found)


def inside(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@cache
def light() -> frozenset[str]:
    """The modules that describe sections of a configuration, and those of the engine that these import."""
    found: set[str] = set()
    new = {module for module in SECTIONS.values() if isinstance(module, str)}
    while new:
        found |= new
        new = {each for name in new for each in imports(name) if inside(each, "engine")} - found
    return frozenset(found)


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


@pytest.mark.parametrize("package", ABOVE)
def test_imports_point_one_way(package: str) -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in modules()
        if inside(name, package) and not any(inside(name, above) for above in ABOVE[package])
        for imported in imports(name) - light()
        if any(inside(imported, above) for above in ABOVE[package]) and not inside(imported, package)
    ]
    if package == "engine":
        wrong = [line for line in wrong if not line.startswith("engine.__main__ ")]
    assert not wrong


def test_a_section_is_read_without_a_library_and_without_the_rooms_that_use_it() -> None:
    """Every module may import a section's settings, so these import their own room, `routes`, and Python itself."""
    rooms = {module.rpartition(".")[0] for module in SECTIONS.values() if isinstance(module, str)}
    wrong = [
        f"{name} imports {imported}"
        for name in light()
        for imported in imports(name)
        if not inside(imported, name.rpartition(".")[0])
        and not inside(imported, "routes")
        and imported.split(".")[0] not in sys.stdlib_module_names
    ]
    assert not wrong
    assert len(rooms) > 3


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


@pytest.mark.parametrize("package", ONLY)
def test_a_package_at_the_bottom_imports_only_what_is_listed(package: str) -> None:
    wrong = [
        f"{name} imports {imported}"
        for name in modules()
        if inside(name, package)
        for imported in imports(name)
        if imported.split(".")[0] in PACKAGES
        and not any(inside(imported, allowed) for allowed in (package, *ONLY[package]))
    ]
    assert not wrong


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_is_known_only_where_it_belongs(library: str) -> None:
    wrong = [
        name
        for name in modules()
        if any(inside(imported, library) for imported in imports(name))
        and not any(inside(name, place) for place in LIBRARIES[library])
    ]
    assert not wrong


def test_no_connector_imports_another() -> None:
    packages = {path.parent.name for path in (ROOT / "engine/connectors").glob("*/__init__.py")}
    # The listener is the server of the protocol whose client is beside it; one description is for both.
    allowed = {("amqp_listener", "amqp")}
    describes = {"engine.connectors.amqp.system": "amqp_listener"}
    wrong = [
        f"{name} imports {imported}"
        for name in modules()
        for imported in imports(name)
        if name.startswith("engine.connectors.")
        and imported.startswith("engine.connectors.")
        and {name.split(".")[2], imported.split(".")[2]} <= packages
        and name.split(".")[2] != imported.split(".")[2]
        and (name.split(".")[2], imported.split(".")[2]) not in allowed
        and describes.get(name) != imported.split(".")[2]
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


def test_no_modules_import_each_other_in_a_circle() -> None:
    # For types only or within a function: two modules that need each other are read together all the same.
    graph = {name: {i for i in imports(name) if i in modules() and i != name} for name in modules()}
    # A package's own list of names imports its modules, and importing a module imports its package.
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    graph = {name: needed - {p for p in packages if inside(name, p)} for name, needed in graph.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


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
