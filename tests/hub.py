"""A stand-in for the Hugging Face hub: the requests that huggingface_hub makes to push and fetch models."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

TOKEN = "hf_standin0000000000000000000000000"
# As the real hub does: weights go the way of large files, text goes into the commit itself.
LARGE = (".safetensors", ".npy")


class Hub:
    """What the stand-in holds: repositories with files, large objects, and the requests it was sent."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.commits: dict[str, list[str]] = {}
        self.private: dict[str, bool] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        # A part of a path → the status with which such requests are refused.
        self.refused: dict[str, int] = {}

    def commit(self, name: str, lines: list[dict[str, Any]]) -> str:
        """Apply a commit as a whole; returns its id."""
        files = dict(self.files[name])
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.commits[name].append(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
            elif line["key"] == "deletedFile":
                files.pop(value["path"], None)
            else:
                raise ValueError(line["key"])
        self.files[name] = files
        return self.head(name)

    def head(self, name: str) -> str:
        """The id of the newest commit."""
        return hashlib.sha1(f"{name} {len(self.commits[name])}".encode()).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def _answer(self, body: Any = None, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _refused(self, path: str) -> bool:
        self.hub.requests.append(f"{self.command} {path}")
        self._body = self._read()
        for part, status in self.hub.refused.items():
            if part in path:
                self._answer({"error": f"refused with {status}"}, status)
                return True
        if self.command != "PUT" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "Invalid username or password."}, 401)
            return True
        return False

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        if self._refused(path):
            return
        hub, parts = self.hub, path.strip("/").split("/")
        if path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            asked = json.loads(self._body)
            name = f"{asked.get('organization') or 'me'}/{asked['name']}"
            there = name in hub.files
            if not there:
                hub.files[name], hub.commits[name] = {".gitattributes": b"*.safetensors lfs\n"}, []
                hub.private[name] = asked.get("visibility") == "private" or bool(asked.get("private"))
            self._answer({"url": f"{self._root()}/{name}", "name": name}, 409 if there else 200)
        elif "preupload" in parts:
            files = [
                {
                    "path": one["path"],
                    "uploadMode": "lfs" if one["path"].endswith(LARGE) else "regular",
                    "shouldIgnore": False,
                }
                for one in json.loads(self._body)["files"]
            ]
            self._answer({"files": files})
        elif path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**one, "actions": {"upload": {"href": f"{self._root()}/objects/{one['oid']}"}}}
                for one in json.loads(self._body)["objects"]
            ]
            self._answer({"transfer": "basic", "objects": objects})
        elif "commit" in parts:
            name = "/".join(parts[2:4])
            oid = hub.commit(name, [json.loads(line) for line in self._body.splitlines()])
            self._answer({"commitOid": oid, "commitUrl": f"{self._root()}/{name}/commit/{oid}"})
        else:
            self._answer({"error": f"unknown: {path}"}, 404)

    def do_PUT(self) -> None:
        path = urlsplit(self.path).path
        if self._refused(path):
            return
        oid = path.rpartition("/")[2]
        right = hashlib.sha256(self._body).hexdigest() == oid
        if right:
            self.hub.objects[oid] = self._body
        self._answer({}, 200 if right else 400)

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if self._refused(path):
            return
        hub, parts = self.hub, path.strip("/").split("/")
        name = "/".join(parts[2:4]) if parts[0] == "api" else "/".join(parts[:2])
        if name not in hub.files:
            self._answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        elif "tree" in parts:
            files = hub.files[name].items()
            self._answer(
                [
                    {"type": "file", "path": p, "size": len(d), "oid": hashlib.sha1(d).hexdigest()}
                    for p, d in files
                ]
            )
        elif "resolve" in parts:
            self._file(name, "/".join(parts[4:]))
        else:
            siblings = [{"rfilename": file} for file in hub.files[name]]
            about = {"id": name, "sha": hub.head(name), "siblings": siblings, "private": hub.private[name]}
            self._answer({**about, "tags": [], "downloads": 0, "likes": 0})

    do_HEAD = do_GET

    def _file(self, name: str, path: str) -> None:
        data = self.hub.files[name].get(path)
        if data is None:
            self._answer({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound")
            return
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        self._answer(data, ETag=tag, X_Repo_Commit=self.hub.head(name))

    def _root(self) -> str:
        host, port = self.server.server_address[:2]
        return f"http://{host!s}:{port}"


@contextmanager
def serving() -> Iterator[tuple[Hub, str]]:
    """A hub at an address of this machine."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
