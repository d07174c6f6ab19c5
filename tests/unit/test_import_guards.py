"""Rules of imports: which packages and libraries a module may use (docs/architecture.md)."""

from __future__ import annotations

import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from routes.section_registry import SECTIONS
from tests.unit.source_tree import PACKAGES, ROOT, imports, inside, modules

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


@cache
def light() -> frozenset[str]:
    """The modules that describe sections of a configuration, and those of the engine that these import."""
    found: set[str] = set()
    new = {module for module in SECTIONS.values() if isinstance(module, str)}
    while new:
        found |= new
        new = {each for name in new for each in imports(name) if inside(each, "engine")} - found
    return frozenset(found)


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
