"""The class path of a provider's client: the files it stands for, the packages that Maven fetches, and its checks."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from difflib import get_close_matches
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import structlog

from engine.connectors.jms_client.class_files import APIS, Classes, ClassFile
from engine.errors import SetupError
from engine.file_lock import lock
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from routes.errors import Fault
    from routes.keys.settings import Settings

__all__ = ["check", "files", "package_folder", "resolve"]

_FACTORY = "ConnectionFactory"
_SECONDS = 600
_NUMBERS = {"I": 32, "J": 64, "S": 16, "B": 8}
_SHOWN = 3
_log = structlog.get_logger(__name__)


def files(entries: Sequence[str]) -> list[Path]:
    """Returns the jars and folders that entries of a class path stand for; SetupError for an entry without any."""
    paths: list[Path] = []
    for entry in entries:
        matches = sorted(Path(each) for each in glob(entry))  # noqa: PTH207 - the pattern may be absolute
        # As in Java's class paths, `*` alone is all jars of a folder.
        if entry.endswith("/*"):
            matches = [each for each in matches if each.suffix == ".jar"]
        if not matches:
            raise SetupError(f"no file for '{entry}' of the class path")
        paths += [each for each in matches if each not in paths]
    return paths


def package_folder(data: Path, packages: Sequence[str]) -> Path:
    """Returns the folder of the jars of packages, which `resolve` fills; `data` is the bridge's data folder."""
    name = hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()[:16]
    return data / "jms-clients" / name


def resolve(data: Path, packages: Sequence[str]) -> list[Path]:
    """Returns the jars of packages; Maven fetches them if the data folder does not have them.

    Raises:
        SetupError: there is no Maven, or it does not find them.
    """
    if not packages:
        return []
    folder = package_folder(data, packages)
    make_folder(folder.parent)
    with (folder.parent / f"{folder.name}.lock").open("w") as file:
        lock(file.fileno())
        if not folder.is_dir():
            _fetch(folder, packages)
    return sorted(folder.glob("*.jar"))


def _fetch(folder: Path, packages: Sequence[str]) -> None:
    if shutil.which("mvn") is None:
        raise SetupError(f"no mvn in PATH, which would fetch {', '.join(packages)}: install Maven, or set class-path")
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    make_folder(fresh)
    wanted = "".join(
        "<dependency>"
        + "".join(
            f"<{tag}>{escape(text)}</{tag}>"
            for tag, text in zip(("groupId", "artifactId", "version"), each.split(":"), strict=True)
        )
        + "</dependency>"
        for each in packages
    )
    (fresh / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>jmsbridge</groupId><artifactId>client</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{wanted}</dependencies></project>"
    )
    _log.info("fetching the JMS client", packages=list(packages), folder=str(folder))
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    command = ["mvn", "--batch-mode", "--strict-checksums", "-Dstyle.color=never", goal, "-DincludeScope=runtime"]
    try:
        done = subprocess.run(
            [*command, "-DoutputDirectory=."], cwd=fresh, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(f"Maven has not fetched {', '.join(packages)} in {_SECONDS} seconds") from error
    if done.returncode:
        lines = [line.removeprefix("[ERROR] ") for line in done.stdout.splitlines() if line.startswith("[ERROR] ")]
        raise SetupError(f"Maven cannot fetch {', '.join(packages)}: {lines[0] if lines else done.stderr.strip()}")
    fresh.rename(folder)


def check(settings: Settings, section: str, name: str) -> None:
    """Adds the faults of class path, connection factory and its properties, found without a JVM.

    Packages that Maven has not fetched yet are not looked into.
    """
    prefix = f"{section}.NAME."
    jars = _jars(settings, prefix, name)
    if jars is None or settings.get(f"{prefix}connection-factory", name) is None:
        return
    with Classes(jars) as classes:
        _check_factory(settings, prefix, name, classes, jars)


def _check_factory(settings: Settings, prefix: str, name: str, classes: Classes, jars: Sequence[Path]) -> None:
    factory, entry = (
        settings.get(f"{prefix}connection-factory", name),
        settings.entry(f"{prefix}connection-factory", name),
    )
    assert entry is not None
    holders = classes.holders(factory)
    if not holders:
        known = [each for each in classes.ending(_FACTORY) if _api(classes, each)]
        near = get_close_matches(factory, known, n=_SHOWN, cutoff=0.4) or known[:_SHOWN]
        folder = next((each for each in jars if each.is_dir() and any(each.glob("*.jar"))), None)
        remedy = f"for the jars in a folder, write {folder}/*" if folder else "name the jars of the provider's client"
        hint = f"did you mean {' or '.join(near)}?" if near else remedy
        among = ", ".join(str(each) if each.is_dir() else each.name for each in jars[:_SHOWN])
        more = f" and {len(jars) - _SHOWN} more" if len(jars) > _SHOWN else ""
        message = f"no class {factory} in the class path ({among}{more})"
        settings.faults.append(entry.fault(message, hint))
        return
    apis = {holder: _api(classes, factory, holder) for holder in holders}
    if len(set(apis.values())) > 1:
        told = ", ".join(f"{holder.name} ({api or 'neither'})" for holder, api in apis.items())
        message = f"{factory} is there for javax.jms and for jakarta.jms: {told}"
        settings.faults.append(entry.fault(message, "keep the jars of one of the two"))
        return
    factory_class = classes.find(factory)
    if factory_class is None or apis[holders[0]] is None:
        settings.faults.append(_no_factory(settings, prefix, name, classes, holders[0]))
        return
    above = [each for each in classes.above(factory_class) if isinstance(each, ClassFile)]
    setters = {each: kind for one in above for each, kind in one.setters}
    _check_properties(settings, prefix, name, setters, takes_names=any(each.takes_names for each in above))


def _jars(settings: Settings, prefix: str, name: str) -> list[Path] | None:
    """Returns the jars that are there already; None without any, for a fault, or if packages are to be fetched yet."""
    paths, packages = settings.get(f"{prefix}class-path", name), settings.get(f"{prefix}packages", name)
    jars: list[Path] = []
    for path in paths or ():
        try:
            jars += files([str(settings.base / path)])
        except SetupError:
            entry = settings.entry(f"{prefix}class-path", name)
            assert entry is not None
            hint = f"looked for {settings.base / path}"
            settings.faults.append(entry.fault(f"there is no file '{path}'", hint, max(entry.value.find(path), 0)))
            return None
    if packages:
        data = settings.base / settings.get("embedded.data")
        folder = package_folder(data, packages)
        if not folder.is_dir():
            return None
        jars += sorted(folder.glob("*.jar"))
    return jars or None


def _api(classes: Classes, name: str, holder: Path | None = None) -> str | None:
    """Returns the API of a connection factory; None for any other class."""
    if (class_file := classes.find(name, holder)) is None:
        return None
    names = [each if isinstance(each, str) else each.name for each in classes.above(class_file)]
    return next((api for api in APIS if f"{api}.{_FACTORY}" in names), None)


def _no_factory(settings: Settings, prefix: str, name: str, classes: Classes, holder: Path) -> Fault:
    entry = settings.entry(f"{prefix}connection-factory", name)
    assert entry is not None
    class_file = classes.find(entry.value)
    above = [] if class_file is None else list(classes.above(class_file))
    missing = [each for each in above if isinstance(each, str) and not each.startswith(("java.", "javax."))]
    message = f"{entry.value} of {holder.name} is not a connection factory of javax.jms or jakarta.jms"
    hint = f"its {missing[0]} is in none of the jars" if missing else ""
    return entry.fault(message, hint)


def _check_properties(
    settings: Settings, prefix: str, name: str, setters: Mapping[str, str], *, takes_names: bool
) -> None:
    """Adds the faults of properties; with `takes_names`, the factory takes those that have no setter by their names."""
    for setting in settings.open(f"{prefix}connection-factory.*", name):
        kind = next((setters[each] for each in _spellings(setting.rest) if each in setters), None)
        factory = settings.get(f"{prefix}connection-factory", name)
        if kind is None and takes_names:
            continue
        if kind is None:
            near = get_close_matches(setting.rest, setters, n=1, cutoff=0.6)
            same = [each for each in setters if each.lower() == setting.rest.lower()]
            hint = (
                f"did you mean {(same or near)[0]}?" if same or near else f"one of {', '.join(sorted(setters))[:300]}"
            )
            settings.faults.append(setting.entry.key_fault(f"{factory} has no property '{setting.rest}'", hint))
        elif (expected := _misfit(kind, setting.text)) is not None:
            settings.faults.append(setting.entry.fault(f"{factory} takes for '{setting.rest}' {expected}"))


def _spellings(name: str) -> tuple[str, ...]:
    """Returns a property's name with either case of its first letter, since both lead to the same setter."""
    return name[:1].lower() + name[1:], name[:1].upper() + name[1:]


def _misfit(kind: str, text: str) -> str | None:
    """Returns what a setter takes if a text is not such a value; None if it is, or if only Java can tell."""
    if kind == "Z":
        return None if text.lower() in ("true", "false") else "true or false"
    if (bits := _NUMBERS.get(kind)) is None:
        return None
    try:
        fits = -(1 << bits - 1) <= int(text) < 1 << bits - 1
    except ValueError:
        fits = False
    return None if fits else f"a whole number of {bits} bits"
