"""Rules of the Java classes in `jvm/`, as `test_import_guards` has them for Python: imports point one way."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]

MAY_USE = {
    "jmsbridge": (),
    "jmsbridge.figures": (),
    "jmsbridge.msk": (),
    "jmsbridge.kafka": ("jmsbridge.figures",),
    "jmsbridge.predicate": ("jmsbridge", "jmsbridge.kafka", "jmsbridge.serdes"),
    "jmsbridge.serdes": ("jmsbridge",),
    "jmsbridge.find": ("jmsbridge.kafka", "jmsbridge.predicate", "jmsbridge.serdes"),
    "jmsbridge.streams": ("jmsbridge", "jmsbridge.kafka", "jmsbridge.serdes"),
    "jmsbridge.copies": (),
    "jmsbridge.cluster": ("jmsbridge.figures", "jmsbridge.streams"),
    "jmsbridge.jms": (),
    "jmsbridge.jms.api": ("jmsbridge.jms",),
}
"""Every package with the others whose classes it may use, docs/architecture.md."""

_TEXT = r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])+'"
_NO_CODE = re.compile(rf"/\*.*?\*/|//[^\n]*|{_TEXT}", re.DOTALL)
_IMPORT = re.compile(r"^import (?:static )?([\w.]+(?:\.\*)?);", re.MULTILINE)
_PACKAGE = re.compile(r"^package ([\w.]+);", re.MULTILINE)


def sources() -> dict[str, str]:
    """Text of each Java file by the full name of its class."""
    found = {}
    for path in (ROOT / "jvm").glob("*/src/main/java/**/*.java"):
        text = path.read_text(encoding="utf-8")
        declared = _PACKAGE.search(text)
        assert declared, f"{path}: no package"
        found[f"{declared[1]}.{path.stem}"] = text
    return found


def package_of(name: str) -> str:
    return name.rpartition(".")[0]


def uses(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The other files that each uses: imported, named in full, or of its package and named alone."""
    return {name: _used(name, _NO_CODE.sub(" ", text), files) for name, text in files.items()}


def _used(name: str, code: str, files: Mapping[str, str]) -> set[str]:
    imported = _IMPORT.findall(code)
    packages = {package_of(each) for each in files}
    assert not {each for each in imported if each.endswith(".*") and each[:-2] in packages}, f"{name}: import of all"
    body = _PACKAGE.sub("", _IMPORT.sub("", code))
    in_full = re.findall(r"\bjmsbridge(?:\.\w+)+", body)
    alone = set(re.findall(r"(?<![\w.])[A-Z]\w*", body)) - {each.rpartition(".")[2] for each in imported}
    named = {f"{package_of(name)}.{each}" for each in alone}
    # Of a nested class or a static member, the file is the one of the class around it.
    for each in (*imported, *in_full):
        named.update(accumulate(each.split("."), "{}.{}".format))
    return (named & files.keys()) - {name}


def wrong_uses(graph: Mapping[str, set[str]], may_use: Mapping[str, tuple[str, ...]]) -> list[str]:
    """What classes use of packages that theirs may not use, a line each."""
    return [
        f"{name} uses {used}"
        for name in sorted(graph)
        for used in sorted(graph[name])
        if package_of(used) not in (package_of(name), *may_use[package_of(name)])
    ]


def circle(graph: Mapping[str, set[str]]) -> str:
    """The first circle found, in words; empty: there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " uses ".join(reversed(error.args[1]))
    return ""


def test_every_java_package_is_listed() -> None:
    assert {package_of(name) for name in sources()} == set(MAY_USE)


def test_java_packages_use_each_other_as_listed() -> None:
    assert wrong_uses(uses(sources()), MAY_USE) == []


def test_no_java_packages_are_listed_in_a_circle() -> None:
    assert circle({package: set(used) for package, used in MAY_USE.items()}) == ""


def test_no_java_files_use_each_other_in_a_circle() -> None:
    assert circle(uses(sources())) == ""


def test_the_documentation_has_the_same_packages_and_uses() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(jmsbridge[\w.]*)` \| .+ \| (.+) \|$", text, re.MULTILINE)
    short = {name.removeprefix("jmsbridge."): name for name in MAY_USE}
    assert {name: tuple(short[each] for each in re.findall(r"`([\w.]+)`", used)) for name, used in rows} == MAY_USE


A, B = "jmsbridge.figures.A", "jmsbridge.streams.B"
A_TEXT = "package jmsbridge.figures;\nfinal class A {}\n"
B_TEXT = "package jmsbridge.streams;\nfinal class B {}\n"


@pytest.mark.parametrize(
    "text",
    [
        "package jmsbridge.figures;\nimport jmsbridge.streams.B;\nfinal class A {}\n",
        "package jmsbridge.figures;\nimport static jmsbridge.streams.B.MOST;\nfinal class A {}\n",
        "package jmsbridge.figures;\nimport static jmsbridge.streams.B.Inner.MOST;\nfinal class A {}\n",
        "package jmsbridge.figures;\nfinal class A { jmsbridge.streams.B b; }\n",
    ],
)
def test_a_wrong_use_of_a_package_is_found(text: str) -> None:
    assert wrong_uses(uses({A: text, B: B_TEXT}), MAY_USE) == [f"{A} uses {B}"]


@pytest.mark.parametrize(
    "text",
    [
        "package jmsbridge.figures;\n/** See {@link jmsbridge.streams.B}. */\nfinal class A {}\n",
        "package jmsbridge.figures;\n// As jmsbridge.streams.B\nfinal class A {}\n",
        'package jmsbridge.figures;\nfinal class A { String b = "\\"jmsbridge.streams.B"; }\n',
        "package jmsbridge.figures;\nimport java.util.B;\nfinal class A { B b; }\n",
    ],
)
def test_comments_texts_and_classes_of_others_are_no_uses(text: str) -> None:
    assert uses({A: text, B: B_TEXT, "jmsbridge.figures.B": A_TEXT})[A] == set()


def test_a_circle_of_files_is_found_in_one_package_and_over_several() -> None:
    c = "jmsbridge.figures.C"
    one = {A: A_TEXT.replace("{}", "{ C c; }"), c: A_TEXT.replace("class A {}", "class C { A.Inner a; }")}
    assert circle(uses(one)) in (f"{A} uses {c} uses {A}", f"{c} uses {A} uses {c}")
    several = {
        A: A_TEXT.replace("final", f"import {B};\nfinal"),
        B: B_TEXT.replace("final", f"import {A};\nfinal"),
    }
    assert circle(uses(several)) in (f"{A} uses {B} uses {A}", f"{B} uses {A} uses {B}")


def test_an_import_of_a_whole_package_is_refused() -> None:
    with pytest.raises(AssertionError, match="import of all"):
        uses({A: A_TEXT.replace("final", "import jmsbridge.streams.*;\nfinal"), B: B_TEXT})
