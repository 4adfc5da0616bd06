"""Make text safe to show and store: no credentials, nothing a terminal would act on."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"(?<=://)(?:[^/\s'\"@]*:[^\s'\"]*|[^/\s'\"]+)@")
"""Up to the last ``@``, because unquoted passwords may contain ``/`` and ``@``."""
_SECRETS = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|pwd|token|secret|api[_-]?key|access[_-]?key(?:[_-]?id)?|account[_-]?key"
    r"|signature|credential|sig|auth))(=|%3D)[^&\s'\";,)]+"
)
_HEADER = re.compile(
    r"(?i)\b(authorization|bearer|basic)(:?\s+)(?:(?:bearer|basic)\s+)?[A-Za-z0-9._~+/=-]{8,}"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def redact(text: str) -> str:
    """Hide credentials in addresses, such as those in error messages and tracking URIs.

    >>> redact("https://me:p@ss/word@host/api?token=abc failed")
    'https://***@host/api?token=*** failed'
    >>> redact("wasbs://box?sv=1&sig=abc%3D&access_key=x")
    'wasbs://box?sv=1&sig=***&access_key=***'
    """
    text = _SECRETS.sub(r"\1\2***", _USERINFO.sub("***@", text))
    return _HEADER.sub(r"\1\2***", text)


def printable(text: str) -> str:
    r"""Replace control characters, which a terminal acts on, and lone surrogates, which UTF-8 rejects.

    >>> printable("red\x1b[31m and \ud800")
    'red\\x1b[31m and \\ud800'
    """
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)
