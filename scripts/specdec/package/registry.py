"""The digest of an image, asked of its registry.

Protocol: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests; anonymous tokens:
https://distribution.github.io/distribution/spec/auth/token/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from specdec.errors import SpecdecError

if TYPE_CHECKING:
    import httpx

ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
DOCKER_HUB = "registry-1.docker.io"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
TIMEOUT = 30  # seconds


def split(image: str) -> tuple[str, str, str]:
    """(registry, repository, tag): "vllm/vllm-openai:v0.32.0" is on Docker Hub. Raises SpecdecError without a tag."""
    name, separator, tag = image.rpartition(":")
    if not separator or "/" in tag:
        raise SpecdecError(f"{image} names no tag", code="SD890", fix="repository:tag")
    first, _, rest = name.partition("/")
    if rest and ("." in first or ":" in first or first == "localhost"):
        return first, rest, tag
    return DOCKER_HUB, name if "/" in name else f"library/{name}", tag


def digest(image: str, client: httpx.Client | None = None) -> str:
    """The digest of a tag, of all platforms together where there are several. Raises SpecdecError."""
    import httpx

    registry, repository, tag = split(image)
    scheme = "http" if registry.split(":")[0] in ("localhost", "127.0.0.1") else "https"
    url = f"{scheme}://{registry}/v2/{repository}/manifests/{tag}"
    asking = client or httpx.Client(timeout=TIMEOUT, follow_redirects=True)
    try:
        answer = asking.head(url, headers={"Accept": ACCEPT})
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            token = _token(asking, answer.headers.get("WWW-Authenticate", ""), image)
            answer = asking.head(url, headers={"Accept": ACCEPT, "Authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        raise _no_digest(image, f"{registry} cannot be reached: {error}") from None
    finally:
        if client is None:
            asking.close()
    if answer.status_code == httpx.codes.NOT_FOUND:
        raise _no_digest(image, "there is no such image or tag")
    if answer.status_code != httpx.codes.OK:
        raise _no_digest(image, f"{registry} answers {answer.status_code}")
    found = answer.headers.get("Docker-Content-Digest", "")
    if DIGEST.fullmatch(found) is None:
        raise _no_digest(image, f"{registry} says no digest of it")
    return str(found)


def _token(client: httpx.Client, challenge: str, image: str) -> str:
    fields = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
    if not challenge.lower().startswith("bearer") or "realm" not in fields:
        raise _no_digest(image, "its registry wants a login")
    asked = {key: fields[key] for key in ("service", "scope") if key in fields}
    answer = client.get(fields["realm"], params=asked)
    try:
        document = answer.json()
        return str(document.get("token") or document["access_token"])
    except (ValueError, KeyError, AttributeError):
        raise _no_digest(image, f"no token from {fields['realm']}: {answer.status_code}") from None


def _no_digest(image: str, why: str) -> SpecdecError:
    return SpecdecError(f"{image}: {why}", code="SD890", fix="--digest IMAGE=sha256:... where it is known")
