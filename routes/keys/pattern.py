r"""The pattern of record keys: one regular expression that Python and Java read alike.

The router evaluates it in Java, `explain` in Python. The two disagree about `\w`, about sets inside sets and about a
few escapes, so a pattern that uses those is refused instead of having two meanings.
"""

from __future__ import annotations

import re
import string
import warnings

from routes.keys.values import BadValueError, ValueKind

__all__ = ["DEFAULT_KEY_PATTERN", "KEY_PATTERN", "plain_characters"]

# Letters, marks and digits of any script, by excluding all other characters: \w differs between Python and Java
# (combining marks, fractions), explicit ranges do not. ASCII first, then Latin-1, then the blocks of blanks,
# punctuation and symbols; joiners (U+200C, U+200D) stay, because Persian and Hindi words need them.
_NEITHER_LETTER_NOR_DIGIT = (
    r"\x00-\x20!\"$%&'()*,;<>?\[\\\]^`|~\x7f-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7"
    r"\u1680\u2000-\u200b\u200e-\u2070\u2080-\u208f\u20a0-\u20ff\u2150-\u2182\u2185-\u2bff\u3000-\u3004\u3008-\u3020\ud800-\uf8ff\ufeff\ufff0-\uffff"
    "\U0001f000-\U0001fbef\U0001fbfa-\U0001ffff"
)
_PUNCTUATION = r"\-_.:@#+/={}"

DEFAULT_KEY_PATTERN = rf"(?![{_PUNCTUATION}]*$)[^{_NEITHER_LETTER_NOR_DIGIT}]*"
"""Letters and digits of any script, at least one, and `- _ . : @ # + / = { }`: UUIDs, `ID:host-1234-1:1`, base64."""


def plain_characters(pattern: str) -> tuple[str, str]:
    """ASCII letters, and other ASCII characters, of which `pattern` matches any text with at least one of the letters.

    Most keys are such texts, and need no regular expression. Empty for a pattern of which that is not known.
    """
    if pattern != DEFAULT_KEY_PATTERN:
        return "", ""
    return string.digits + string.ascii_letters, _PUNCTUATION.replace("\\", "")


_DIFFERENT = (
    (
        r"\\[wWbB]",
        r"'{0}' takes other characters in Java than in Python",
        "write the ranges you mean, as in [A-Za-z0-9_]",
    ),
    (r"\(\?P", "'{0}' is known to Python only", "groups need no names here"),
    (r"\(\?#", "'{0}', a comment, is known to Python only", "put it above the line"),
    (r"\(\?\(", "'{0}', a conditional, is known to Python only", "write two alternatives"),
    (r"\(\?[a-zA-Z-]+[:)]", "'{0}', a flag, differs between Java and Python", "write both cases out, as in [Aa]"),
    (r"\\[UZzNQEGhHRvVXpP]", "'{0}' differs between Java and Python", r"write the characters themselves or \uXXXX"),
    (r"\\0", "'{0}' differs between Java and Python", r"write \x00 and the like"),
    (r"\{,", "'{0}' is known to Python only", "write {{0,"),
)
_TOKEN = re.compile(r"\\.|\[\^?\]?|\]|&&|\{[0-9]+(?:,[0-9]*)?\}|\{|.", re.DOTALL)


def _parse(text: str) -> str:
    if not text:
        raise BadValueError("the pattern is empty and would refuse every key", "remove the line for the default")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            re.compile(text)
    except re.error as error:
        raise BadValueError(f"'{text}' is not a regular expression: {error.msg}", "", error.pos or 0) from error
    except FutureWarning as error:
        raise BadValueError(f"'{text}' is read differently by Java", f"escape it with a backslash: {error}") from error
    _refuse_differences(text)
    return text


def _refuse_differences(text: str) -> None:
    for pattern, message, hint in _DIFFERENT:
        # An even number of backslashes before it means that none of them escapes it.
        if match := re.search(rf"(?<!\\)(?:\\\\)*({pattern})", text):
            raise BadValueError(message.format(match[1]), hint.format(), match.start(1))
    inside = False
    for match in _TOKEN.finditer(text):
        part = match[0]
        if not inside and part.startswith("["):
            inside = True
            if part.endswith("]"):
                raise BadValueError("']' right after '[' differs between Java and Python", r"write \]", match.start())
        elif inside and part in ("[", "[^", "&&"):
            raise BadValueError(f"'{part}' in a set means more in Java", "escape it with a backslash", match.start())
        elif inside and part == "]":
            inside = False
        elif not inside and part == "{":
            raise BadValueError("'{' alone is refused by Java", r"write \{", match.start())


KEY_PATTERN = ValueKind("regular expression", "a regular expression that Java and Python read alike", _parse)
