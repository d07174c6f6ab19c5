"""Makes copies of some of Spark's jars with which its JVM starts faster.

* A jar without its signature. A JVM takes no class of a signed jar from a class-data archive, and computes a digest of
  each class that it loads from one. Spark's compiler Janino is signed.
* Hadoop's default settings without their descriptions, in a jar of their own. Spark's JVM parses these files several
  times at its start, and descriptions are most of their size.
* A jar of Scala with a class in place of each serializable lambda (`jmsbridge.copies` in `jvm/spark`). A JVM makes the
  class of a lambda when it is first used, and keeps none of a serializable one in a class-data archive. Spark makes
  thousands of them up to its first record.

The classes do the same as in the originals, the settings are the same, and what is serialized has the same form.
`engine.spark.jvm` puts the copies into the class path.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET
from zipfile import ZIP_STORED, ZipFile

from engine.jars import HALLMARKS, defaults_copy, jars
from engine.java import find_java

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["convert_lambdas", "copy_jars"]

_SIGNATURE = re.compile(r"META-INF/(?:[^/]+\.(?:SF|RSA|DSA|EC)|SIG-[^/]*)", re.IGNORECASE)
_DEFAULTS = re.compile(r"\w+-default\.xml")
_MANIFEST = "META-INF/MANIFEST.MF"
_OF_SCALA = re.compile(r"scala-library-.+|.+_2\.13-.+")
_CONVERTER = "jmsbridge.copies.LambdaCopies"
_READER_OF_CLASSES = "xbean-asm9-shaded-*.jar"


def copy_jars(source: Path, folder: Path) -> list[Path]:
    """Makes the copies of jars in `source` that need one, in `folder`; returns their paths.

    Raises:
        OSError: a file cannot be read or written.
        zipfile.BadZipFile: a jar is damaged.
        xml.etree.ElementTree.ParseError: a file of default settings is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copies = []
    for jar in sorted(source.glob("*.jar")):
        with ZipFile(jar) as original:
            names = original.namelist()
            if any(_SIGNATURE.fullmatch(name) for name in names):
                copies.append(_written(folder / jar.name, _unsigned(original)))
            if defaults := [name for name in names if _DEFAULTS.fullmatch(name)]:
                files = {name: without_descriptions(original.read(name)) for name in defaults}
                copies.append(_written(folder / defaults_copy(jar.name), files))
    return copies


def convert_lambdas(used: list[Path], folder: Path, run: Callable[[list[str | Path]], object]) -> list[Path]:
    """Makes copies of those jars of Scala among the `used` ones that have serializable lambdas; returns their paths.

    Jars that Spark runs with are among them. `run` runs a command to its end.

    Raises:
        SetupError: Java is missing or too old.
        Exception: what `run` raises, since a jar cannot be read, or its copy not be written.
    """
    originals = [jar for jar in used if _OF_SCALA.fullmatch(jar.name)]
    libraries = [jars() / "spark" / HALLMARKS["spark"], *(jar for jar in used if jar.match(_READER_OF_CLASSES))]
    pairs = [path for jar in originals for path in (jar, folder / jar.name)]
    run([find_java(), "-cp", ":".join(map(str, libraries)), _CONVERTER, *pairs])
    return [folder / jar.name for jar in originals if (folder / jar.name).exists()]


def without_descriptions(settings: bytes) -> bytes:
    """A file of Hadoop's settings with nothing but what Hadoop reads: the name, value and other marks of each."""
    root = ET.fromstring(settings)  # noqa: S314 # from a jar that is pinned by its hash
    for setting in root:
        for description in setting.findall("description"):
            setting.remove(description)
        setting.tail = setting.text = None
        for each in setting:
            each.tail = None
    root.text = None
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content


def _unsigned(jar: ZipFile) -> dict[str, bytes]:
    """The files of a jar, in its order, without the signature and the digests in the manifest."""
    files = {name: jar.read(name) for name in jar.namelist() if not _SIGNATURE.fullmatch(name)}
    # Sections after the first empty line are about single files: their digests.
    main, *_ = re.split(rb"\r?\n\r?\n", files[_MANIFEST], maxsplit=1)
    return {**files, _MANIFEST: main + b"\n\n"}


def _written(path: Path, files: dict[str, bytes]) -> Path:
    """Writes a jar; one of an interrupted set-up never has its name."""
    fresh = path.with_suffix(".new")
    with ZipFile(fresh, "w", ZIP_STORED) as jar:
        for name, content in files.items():
            jar.writestr(name, content)
    return fresh.replace(path)
