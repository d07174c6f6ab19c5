"""Character sets of bodies: each byte of a set with one byte for a character, as a table.

The JVM gets these tables and has none of its own, so both sides read the same characters. In EBCDIC, 0x15 (NEL) ends
lines of text, and 0x25 (LF) hardly occurs: here 0x15 is U+000A and 0x25 is U+0085, as in Java's IBM1047 and on z/OS
Unix; Python has them the other way round. Each character has one byte, so texts come back as they went.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

__all__ = ["CHARSET_NAMES", "NO_CHARACTER", "Charset", "charset", "near_charset"]

NO_CHARACTER = "\ufffe"
"""Stands in a table for a byte without a character."""

_NEL, _LF = 0x15, 0x25
_CODECS = {
    **{f"IBM{page}": f"cp{page}" for page in ("437", "850", "852", "858")},
    **{f"ISO-8859-{part}": f"iso8859-{part}" for part in (*range(1, 10), 13, 15, 16)},
    **{f"windows-{page}": f"cp{page}" for page in range(1250, 1259)},
    "US-ASCII": "ascii",
}
"""Python's codec by the set's name, for sets that Java has alike."""
_EBCDIC_CODECS = {f"IBM{page}": f"cp{page}" for page in ("037", "273", "500", "1026")}
_EBCDIC_CHANGES = {
    "IBM273": ("IBM273", "bc", "¯"),
    "IBM277": ("IBM037", "474a4f5a5b5f676a707b7c809c9e9fa1b0babbc0d0dc", "}#!¤Å^$ø¦ÆØ@{[]ü¢¬|æå~"),
    "IBM278": ("IBM037", "43474a4f515a5b5f63676a71797b7c9fa1b0b5babbc0ccd0dce0ec", "{}§!`¤Å^#$ö\\éÄÖ]ü¢[¬|ä¦å~É@"),
    "IBM280": ("IBM037", "44484a4f5154585a5f6a797b7c90a1b0b1b5babbc0cdd0dde0", "{\\°!]}~é^òù£§[ì¢#@¬|à¦è`ç"),
    "IBM284": ("IBM037", "494a5a696a7ba1b0babbbd", "¦[]#ñÑ¨¢^!~"),
    "IBM285": ("IBM037", "4a5ba1b0b1babc", "$£¯¢[^~"),
    "IBM297": ("IBM037", "44484a4f51545a5f6a797b7c90a0a1b0b1b5babbbdc0d0dde0", "@\\°!{}§^ùµ£à[`¨¢#]¬|~éè¦ç"),
    "IBM871": ("IBM037", "4a4f5a5f797c8c8e9c9ea1acaeb0babbbec0ccd0e0ec", "Þ!ÆÖðÐ`{}]ö@[¢¬|\\þ~æ\xb4^"),
    "IBM1047": ("IBM037", "5fadb0babbbd", "^[¬Ý¨]"),
}
"""Sets that Python lacks, or has with another character: a set like it, the bytes that differ, and their characters."""
_EURO = {"037": 1140, "273": 1141, "277": 1142, "278": 1143, "280": 1144}
_EURO |= {"284": 1145, "285": 1146, "297": 1147, "500": 1148, "871": 1149}
_EURO_PAGES = {f"IBM{number}": f"IBM{page}" for page, number in _EURO.items()}
"""Sets that differ from another one by the euro sign, which has the place of the currency sign."""

_UNICODE = ("UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE")
CHARSET_NAMES = (*dict.fromkeys((*_EBCDIC_CODECS, *_EBCDIC_CHANGES, *_EURO_PAGES)), *_CODECS, *_UNICODE)
"""Names of all sets, as the registry of IANA and Java spell them; `IBM1140` for `IBM01140`."""
_BY_KEY = {name.upper(): name for name in CHARSET_NAMES}


@dataclass(frozen=True, slots=True)
class Charset:
    """Character set."""

    name: str
    table: str | None
    """Character of each byte, or `NO_CHARACTER`; None for Unicode."""


@cache
def charset(name: str) -> Charset | None:
    """Returns the set of a name, in upper or lower case; None if there is none."""
    known = _BY_KEY.get(name.upper())
    return None if known is None else Charset(known, None if known in _UNICODE else _table(known))


def near_charset(name: str) -> str | None:
    """Returns the name of a set that another name may mean: one with the same number, or of a similar name."""
    number = re.search(r"[0-9]+\Z", name)
    same = [each for each in CHARSET_NAMES if number and re.sub(r".*[^0-9]0*", "", each) == number[0].lstrip("0")]
    near = get_close_matches(name.upper(), same or _BY_KEY, n=1, cutoff=0.0 if same else 0.6)
    return _BY_KEY.get(near[0].upper()) if near else None


def _table(name: str) -> str:
    if name in _CODECS:
        return _decoded(_CODECS[name])
    if name in _EURO_PAGES:
        return _table(_EURO_PAGES[name]).replace("¤", "€")
    page, places, others = _EBCDIC_CHANGES.get(name, (name, "", ""))
    characters = list(_decoded(_EBCDIC_CODECS[page]))
    characters[_NEL], characters[_LF] = characters[_LF], characters[_NEL]
    for byte, character in zip(bytes.fromhex(places), others, strict=True):
        characters[byte] = character
    return "".join(characters)


def _decoded(codec: str) -> str:
    decode = codecs.getdecoder(codec)
    characters = []
    for byte in range(256):
        try:
            characters.append(decode(bytes([byte]))[0])
        except UnicodeDecodeError:
            characters.append(NO_CHARACTER)
    return "".join(characters)
