"""Removes from the packages of an image what a bridge never loads: `trim.py ENVIRONMENT`."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

UNUSED = (
    # Needed to install the others.
    *("_distutils_hack", "distutils-precedence.pth", "pkg_resources"),
    *("editables*", "hatchling*", "packaging*", "pathspec*", "pip", "pip-*", "pluggy*", "setuptools*", "tomlkit*"),
    *("trove_classifiers*", "wheel*"),
    # Tests and examples, and what only compilers read.
    *("pyspark/examples", "pyspark/data", "pyspark/**/tests", "numpy/**/tests", "psutil/tests"),
    *("pyarrow/tests", "pyarrow/include", "pyarrow/src", "pyarrow/**/*.pyx", "pyarrow/**/*.pxi", "pyarrow/**/*.pxd"),
    # Parts of Arrow for other file systems and servers.
    *("pyarrow/*flight*", "pyarrow/*substrait*", "pyarrow/*s3*"),
    *(
        f"pyspark/jars/{name}*.jar"
        for name in (
            # Spark's machine learning.
            *("JLargeArrays", "JTransforms", "algebra", "arpack", "blas", "breeze", "cats-kernel", "lapack"),
            *("spark-graphx", "spark-mllib", "spire"),
            # Its tables in Hive; its format ORC needs hive-storage-api, which stays.
            *("HikariCP", "ST4", "antlr-runtime", "datanucleus", "derby", "javax.jdo", "javolution", "jdo-api"),
            *("libfb303", "libthrift", "spark-hive", "hive-beeline", "hive-cli", "hive-common", "hive-exec"),
            *("hive-jdbc", "hive-metastore", "hive-serde", "hive-shims"),
            # Its server for other programs, and its shell.
            *("jline", "scala-compiler", "spark-connect", "spark-pipelines", "spark-repl"),
            # Native libraries for other systems, in jars of their own.
            *("netty-*-osx", "netty-*-windows", "netty-*-linux-riscv64"),
        )
    ),
    "pyspark/jars/connect-repl",
)
"""Glob patterns below the folder of Python's packages."""
OWN = {"x86_64": r"[Ll]inux/?(?:64|amd64|x86_64)", "aarch64": r"[Ll]inux[-/]aarch64"}
"""Name of this system in the paths of native libraries, by processor, as a regular expression."""
NATIVE = re.compile(r".*\.(?:so|dll|dylib|jnilib)")
JARS_OF_ALL_SYSTEMS = "lz4-java", "rocksdbjni", "snappy-java", "zstd-jni"
"""Jars with native libraries of many systems, by the beginnings of their names."""


def main() -> None:
    """Trims the environment whose folder is the only argument."""
    (packages,) = Path(sys.argv[1]).glob("lib/python3.*/site-packages")
    for pattern in UNUSED:
        for path in [*packages.glob(pattern)]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for name in JARS_OF_ALL_SYSTEMS:
        (jar,) = packages.glob(f"pyspark/jars/{name}-*.jar")
        trim_jar(jar)


def trim_jar(jar: Path) -> None:
    """Rewrites a jar without the native libraries of other systems.

    Raises:
        SystemExit: no native library is left, so this system is not among those that are known here.
    """
    own = re.compile(rf".*{OWN[platform.machine()]}(?:\.so|/[^/]+\.so)")
    fresh = jar.with_suffix(".new")
    left = 0
    with ZipFile(jar) as source, ZipFile(fresh, "w", ZIP_DEFLATED) as target:
        for entry in source.infolist():
            if NATIVE.fullmatch(entry.filename):
                if not own.fullmatch(entry.filename):
                    continue
                left += 1
            target.writestr(entry, source.read(entry))
    if not left:
        sys.exit(f"{jar.name} has no native library for {platform.machine()}")
    fresh.replace(jar)


if __name__ == "__main__":
    main()
