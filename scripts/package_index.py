"""What a package index tells of torch: by version, the CUDA and the cuDNN that pip's default requires."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.parser import HeaderParser

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

PYPI = "https://pypi.org"
MOST_BYTES = 32 << 20  # of one answer; the list of torch's files has less than 1 MB
SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"
HERE = {
    "os_name": "posix",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "extra": "",
}
"""Where a wheel is asked for; the versions of Python and of the kernel are those of this machine."""


class Unreadable(Exception):
    """The index does not answer, or with something else than it should."""


class Refused(Exception):
    """A table or an argument that cannot be used."""


Version = tuple[int, ...]


def parts(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


def is_final(text: str) -> bool:
    """No pre-release, no development release, no local version such as 2.11.0+cu126."""
    return re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}", text) is not None


def series(text: str) -> str:
    return ".".join(text.split(".")[:2])


def pins(requirements: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What is required in one version: (nvidia-cudnn, 9.19.0.56) of nvidia-cudnn-cu13==9.19.0.56."""
    for text in requirements:
        if not re.match(r"\s*(nvidia|cuda)[-_.]", text, re.I):
            continue
        required = Requirement(text)
        try:
            if required.marker and not required.marker.evaluate(HERE):
                continue
        except (UndefinedComparison, UndefinedEnvironmentName) as error:
            raise InvalidRequirement(f"{text}: {error}") from error
        specifiers = list(required.specifier)
        pinned = len(specifiers) == 1 and specifiers[0].operator in ("==", "===")
        version = re.fullmatch(r"([0-9]+(?:\.[0-9]+)+)(?:\.\*)?", specifiers[0].version) if pinned else None
        if version:
            yield re.sub(r"-cu[0-9]+$", "", canonicalize_name(required.name)), version[1]


@dataclass(frozen=True)
class Build:
    """What pip installs by default; the numbers as the requirements have them, or empty."""

    cuda: str = ""
    cudnn: str = ""
    silent: str = ""  # why nothing is known


def build_of(requirements: list[str]) -> Build:
    try:
        pinned = dict(pins(requirements))
    except InvalidRequirement as problem:
        return Build(silent=f"the metadata has a requirement that does not read: {str(problem).splitlines()[0]}")
    told = [pinned[n] for n in ("cuda-toolkit", "nvidia-cuda-runtime", "nvidia-cuda-nvrtc") if n in pinned]
    if not told:
        return Build(silent="the metadata names no CUDA")
    if len({series(version) for version in told}) > 1:
        return Build(silent=f"the metadata contradicts itself: CUDA {' and '.join(told)}")
    cudnn = pinned.get("nvidia-cudnn", "")
    return Build(told[0], cudnn if cudnn.count(".") >= 2 else "")


def as_object(text: bytes, url: str) -> dict:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{url}: the answer is no JSON ({error})") from error
    if not isinstance(found, dict):
        raise Unreadable(f"{url}: the answer is no JSON object")
    return found


@dataclass(frozen=True)
class File:
    version: str
    url: str
    for_linux: bool  # a wheel for Linux on x86-64
    yanked: bool

    @classmethod
    def parse(cls, file: object, page: str) -> File:
        if not isinstance(file, dict) or not all(isinstance(file.get(k), str) for k in ("filename", "url")):
            raise Unreadable(f"{page}: a file has no name or no URL")
        try:
            url = urllib.parse.urldefrag(urllib.parse.urljoin(page, file["url"])).url
        except ValueError as error:
            raise Unreadable(f"{page}: the URL of a file does not read ({error})") from error
        name = file["filename"]
        version, _, tag = name.removeprefix("torch-").partition("-")
        linux = name.endswith("x86_64.whl") and "linux" in tag.rpartition("-")[2]
        return cls(version.removesuffix(".tar.gz"), url, linux, bool(file.get("yanked")))


@dataclass
class Index:
    base: str  # https://pypi.org
    timeout: float
    authorisation: dict[str, str] = field(default_factory=dict)
    about_newest: dict | None = None  # once it was asked for

    def get(self, url: str, accept: str = "*/*") -> bytes | None:
        """Nothing, where there is no such page."""
        if not url.startswith(("http://", "https://")):
            raise Unreadable(f"{url}: is no address of the web")
        headers = {"Accept": accept, "User-Agent": "launchgap-update-tables"}
        if url.startswith(self.base + "/"):
            headers |= self.authorisation
        deadline = time.monotonic() + self.timeout
        late = f"{url}: no answer within {self.timeout:g} s"
        try:
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return self.body(answer, url, deadline)
        except urllib.error.HTTPError as error:
            if error.code in (403, 404, 410):
                return None
            raise Unreadable(f"{url}: HTTP {error.code} {error.reason}") from error
        except TimeoutError as error:
            raise Unreadable(late) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise Unreadable(late if isinstance(reason, TimeoutError) else f"{url}: {reason}") from error

    def body(self, answer: http.client.HTTPResponse, url: str, deadline: float) -> bytes:
        found = bytearray()
        while chunk := answer.read1(1 << 16):
            found += chunk
            if len(found) > MOST_BYTES:
                raise Unreadable(f"{url}: the answer is larger than {MOST_BYTES >> 20} MB")
            if time.monotonic() > deadline:
                raise TimeoutError
        expected = answer.headers.get("Content-Length")
        if expected and expected.isdigit() and len(found) != int(expected):
            raise Unreadable(f"{url}: the answer ends after {len(found)} of {expected} bytes")
        return bytes(found)

    def about(self, version: str = "") -> dict:
        """The JSON of a version, or of the newest with the files of all. Empty, where the index has none."""
        url = f"{self.base}/pypi/torch/{version + '/' if version else ''}json"
        text = self.get(url, "application/json")
        return {} if text is None else as_object(text, url)

    def newest(self) -> dict:
        if self.about_newest is None:
            self.about_newest = self.about()
        return self.about_newest

    def files(self) -> list[File]:
        """Of all versions, by the simple API; where that is missing or in HTML only, by the other JSON."""
        url = f"{self.base}/simple/torch/"
        text = self.get(url, SIMPLE_JSON)
        if text and text.lstrip()[:1] == b"{":
            found = as_object(text, url).get("files")
        else:
            url = f"{self.base}/pypi/torch/json"
            releases = self.newest().get("releases")
            lists = list(releases.values()) if isinstance(releases, dict) else []
            found = [file for files in lists if isinstance(files, list) for file in files]
        if not isinstance(found, list) or not found:
            raise Unreadable(f"{url}: there is no list of torch's files")
        return [File.parse(file, url) for file in found]

    def requirements(self, version: str, wheels: list[File]) -> list[str] | None:
        """A wheel's own; else those of the version's JSON, which are of the file that was uploaded first.

        An index may have the metadata of some wheels only, and not say of which.
        """
        for wheel in wheels:
            text = self.get(wheel.url + ".metadata")
            if text is None:
                continue
            message = HeaderParser().parsestr(text.decode(errors="replace"))
            if message.get("Name", "").lower() != "torch":
                raise Unreadable(f"{wheel.url}.metadata: is no metadata of torch")
            return message.get_all("Requires-Dist", [])
        info = (self.about(version) or self.newest()).get("info")
        if not isinstance(info, dict) or info.get("version") != version:
            return None
        required = info.get("requires_dist") or []
        if not isinstance(required, list) or not all(isinstance(r, str) for r in required):
            raise Unreadable(f"{self.base}/pypi/torch/json: requires_dist of {version} is no list of texts")
        return required


def build_by(index: Index, version: str, files: list[File]) -> Build:
    wheels = [file for file in files if file.for_linux]
    if not wheels:
        return Build(silent="it has no wheel for Linux on x86-64")
    offered = [wheel for wheel in wheels if not wheel.yanked]
    if not offered:
        return Build(silent="it is yanked")
    required = index.requirements(version, offered)
    return Build(silent="the index has no metadata of it") if required is None else build_of(required)


def builds_by(index: Index) -> dict[str, Build]:
    """By version, oldest first; without pre-releases."""
    by_version: dict[str, list[File]] = {}
    for file in index.files():
        if is_final(file.version):
            by_version.setdefault(file.version, []).append(file)
    builds = {v: build_by(index, v, by_version[v]) for v in sorted(by_version, key=parts)}
    if not any(build.cuda for build in builds.values()):
        raise Unreadable(f"{index.base}: it tells of no version of torch which CUDA it requires")
    return builds


def index_of_pip() -> str:
    if url := os.environ.get("PIP_INDEX_URL", "").strip():
        return url
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return PYPI
    return done.stdout.strip() if done.returncode == 0 and done.stdout.strip() else PYPI


def index_at(url: str, timeout: float) -> Index:
    """A user and password in the URL become a header: they are in no message."""
    try:
        split = urllib.parse.urlsplit(url)
        host = split.hostname and split.netloc.rpartition("@")[2]
    except ValueError:
        host = None
    if not host or split.scheme not in ("http", "https"):
        raise Refused("the index is no URL such as https://pypi.org")
    base = f"{split.scheme}://{host}{split.path}".rstrip("/").removesuffix("/simple")
    if not split.username:
        return Index(base, timeout)
    user = f"{urllib.parse.unquote(split.username)}:{urllib.parse.unquote(split.password or '')}"
    return Index(base, timeout, {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()})
