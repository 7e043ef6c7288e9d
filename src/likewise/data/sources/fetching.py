"""Download published files: over TLS, within limits, resumed after a broken connection, and checked.

Only https is fetched, and http from this machine itself. Proxies of the environment are used. A file goes to
a place that the caller names, which is not its final one; whoever calls this removes it after an error.
"""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from likewise.data.sources.listing import Download
from likewise.errors import DataError, Problem, UsageError
from likewise.spelling import spelt_call
from likewise.wording import clipped, counted

# Told the bytes so far, and all of them if the server says how many there are.
Gauge = Callable[[int, int | None], None]
Tell = Callable[[str], None]

_CHUNK = 256 * 1024
_MIB = 2**20
# Of what a server says: characters of its words and addresses that are shown, and digits of a size.
_SHOWN, _SHOWN_URL, _MOST_DIGITS = 200, 1000, 18
# What may pass by itself: too many requests, and errors of servers and of gateways before them.
_PASSING = {408, 425, 429, 500, 502, 503, 504}


class FetchError(DataError):
    """A published file could not be downloaded."""


class _BrokenError(Exception):
    """The connection broke. What came so far is kept, and the next try asks for the rest."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a server is waited for, how often it is asked again, and the pause before that, in seconds."""

    timeout: float = 60.0
    tries: int = 4
    pause: float = 1.0


def fetch_file(
    download: Download,
    path: Path,
    *,
    patience: Patience | None = None,
    progress: Gauge | None = None,
    tell: Tell | None = None,
) -> None:
    """Download a file to a path. After a broken connection, the rest is asked for (HTTP Range).

    An error says which address failed and why, and how to go on by hand.
    """
    allowed = patience or Patience()
    check_address(download.url)
    opener = _opener()
    state = _State(path)
    for attempt in range(1, allowed.tries + 1):
        try:
            _continue(opener, download, state, allowed.timeout, progress)
            break
        except _BrokenError as error:
            if attempt == allowed.tries:
                times = counted(attempt, "time")
                raise _failed(download.url, f"{error}; it was tried {times}") from error
            if tell is not None:
                tell(f"{download.url}: {error}. It is tried again.")
            time.sleep(allowed.pause * 2 ** (attempt - 1))
    _check_content(download, path)


def check_address(url: str) -> None:
    """Refuse an address that is neither https nor on this machine."""
    try:
        parts = urlsplit(url)
        scheme, host, _ = parts.scheme, parts.hostname, parts.port
    except ValueError:  # brackets that are no address, or a port that is no number
        scheme, host = "", None
    if host and (scheme == "https" or (scheme == "http" and _is_here(host))):
        return
    shown = clipped(url, most=_SHOWN_URL)
    raise UsageError(f"{shown} is not an https address. Name one that begins with https://, or a file.")


@dataclass(slots=True)
class _State:
    """What has come so far, and what tells whether the server still has the same file."""

    path: Path
    have: int = 0
    mark: str = ""


def _continue(opener: Any, download: Download, state: _State, timeout: float, progress: Gauge | None) -> None:
    """Ask for the file, or for what is still missing of it, and write what comes."""
    import http.client
    import urllib.error
    import urllib.request

    headers = {"User-Agent": "likewise", "Accept-Encoding": "identity"}
    if state.have and state.mark:
        headers |= {"Range": f"bytes={state.have}-", "If-Range": state.mark}
    try:
        with opener.open(urllib.request.Request(download.url, headers=headers), timeout=timeout) as answer:
            _receive(answer, download, state, progress)
    except urllib.error.HTTPError as error:
        error.close()
        said = f"the server answers {error.code} {clipped(str(error.reason), most=_SHOWN)}"
        if error.code in _PASSING:
            raise _BrokenError(said) from error
        if error.code == 416:  # the file has changed, or was whole already: from the beginning
            state.have, state.mark = 0, ""
            raise _BrokenError(said) from error
        raise _failed(download.url, said) from error
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", error)
        if _is_ours(reason):
            raise
        if "CERTIFICATE_VERIFY_FAILED" in str(reason):
            raise _failed(download.url, "the certificate of the server is not valid") from error
        said = clipped(str(reason or type(error).__name__), most=_SHOWN)
        raise _BrokenError(f"the connection failed ({said})") from error
    except ValueError as error:  # an address or a number that the server made up
        said = f"the server's answer cannot be read ({clipped(str(error), most=_SHOWN)})"
        raise _failed(download.url, said) from error


def _receive(answer: Any, download: Download, state: _State, progress: Gauge | None) -> None:
    check_address(answer.geturl())
    resumed = answer.status == 206 and _starts_at(answer.headers.get("Content-Range", "")) == state.have
    have = state.have if resumed else 0
    length = answer.headers.get("Content-Length", "")
    total = None if (rest := _whole(length)) is None else have + rest
    most = download.most * _MIB
    if total is not None and total > most:
        said = f"the file has {-(-total // _MIB):,} MiB, but at most {download.most:,} are expected"
        raise _failed(download.url, said)
    kind = answer.headers.get("Content-Type", "")
    if kind.startswith("text/html") and not download.name.endswith((".html", ".htm")):
        raise _failed(download.url, "the server sends a web page in place of the file")
    validator = answer.headers.get("ETag", "")
    # A weak validator promises no equal bytes.
    state.mark = (validator if validator and not validator.startswith("W/") else "") or answer.headers.get(
        "Last-Modified", ""
    )
    with state.path.open("ab" if resumed else "wb") as file:
        while block := answer.read(_CHUNK):
            have += len(block)
            if have > most:
                raise _failed(download.url, f"more than {download.most:,} MiB came, and no more are expected")
            file.write(block)
            state.have = have
            if progress is not None:
                progress(have, total)
    if total is not None and have < total:
        raise _BrokenError(f"the connection ended after {have:,} of {total:,} bytes")


def _check_content(download: Download, path: Path) -> None:
    if not download.sha256:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != download.sha256:
        said = f"the sha256 is {found[:12]}…, but {download.sha256[:12]}… is expected"
        raise _failed(download.url, f"{said}, so this is another file than the published one")


def _opener() -> Any:
    """Opens addresses and follows redirects, but none that leaves TLS."""
    import urllib.request

    class Redirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:
            check_address(newurl)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    return urllib.request.build_opener(Redirects)


def _starts_at(content_range: str) -> int:
    """The first byte of an answer to a Range, or -1: "bytes 200-999/1000" begins at 200."""
    first = content_range.removeprefix("bytes ").partition("-")[0]
    start = _whole(first)
    return -1 if start is None else start


def _whole(text: str) -> int | None:
    """The number of bytes that a server states, or None if it states none. One that no file has is cut."""
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text) if len(text) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_ours(error: object) -> bool:
    """Whether an error is about the file that is written, and not about the connection."""
    import errno

    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


def _failed(url: str, found: str) -> FetchError:
    remedy = f"download it by hand and name the file: {spelt_call('data get', 'NAME', place='FILE')}"
    return FetchError([Problem(url, found, remedy)])
