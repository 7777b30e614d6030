"""A client of vLLM's OpenAI API: what smoke tests and measurements ask of a server, with errors that name the cause."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx

from specdec.errors import FoundWrong

Json = dict[str, Any]


class EndpointError(FoundWrong):
    """The server cannot be reached, refuses, or answers with something that is not the API."""


@dataclass(frozen=True)
class Chunk:
    """One streamed chunk: when it came (seconds on the monotonic clock) and what it holds."""

    at: float
    data: Json

    @property
    def text(self) -> str:
        """The text that it brings, of a completion or of a chat."""
        choices = self.data.get("choices") or [{}]
        return choices[0].get("text") or (choices[0].get("delta") or {}).get("content") or ""

    @property
    def tokens(self) -> int | None:
        """Tokens generated so far in this answer, where the server says it (`continuous_usage_stats`)."""
        usage = self.data.get("usage")
        return usage.get("completion_tokens") if usage else None


@dataclass(frozen=True)
class Endpoint:
    """A server under `prefix` of an HTTP client. `label` names it in messages."""

    client: httpx.Client
    prefix: str
    label: str

    def get(self, path: str, *, timeout: float = 30) -> httpx.Response:
        """A GET. Raises EndpointError where no answer comes or it is not a 2xx."""
        with self._errors(timeout):
            response = self.client.get(self.prefix + path, timeout=timeout)
        return self._checked(response, path)

    def post(self, path: str, body: Json, *, timeout: float = 300) -> Json:
        """A POST of JSON that answers with a JSON object."""
        with self._errors(timeout):
            response = self.client.post(self.prefix + path, json=body, timeout=timeout)
        return self._object(self._checked(response, path))

    def stream(self, path: str, body: Json, *, timeout: float = 300) -> Iterator[Chunk]:
        """The chunks of a streamed answer, each stamped when it came. Raises where the stream ends before [DONE]."""
        request = {**body, "stream": True}
        with (
            self._errors(timeout),
            self.client.stream("POST", self.prefix + path, json=request, timeout=timeout) as response,
        ):
            if response.status_code >= 400:
                response.read()
            self._checked(response, path)
            ended = False
            # Read on after [DONE]: leaving bytes unread would close the connection, and with it others' streams.
            for line in response.iter_lines():
                at = time.perf_counter()
                if ended or not line.startswith("data:"):
                    continue
                payload = line.removeprefix("data:").strip()
                if payload == "[DONE]":
                    ended = True
                    continue
                chunk = self._parse(payload)
                if "error" in chunk:
                    raise EndpointError(f"{self.label}: the stream broke off: {error_text(chunk)}", code="stream")
                yield Chunk(at, chunk)
        if ended:
            return
        raise EndpointError(f"{self.label}: the stream ended without [DONE]: the answer was cut", code="stream")

    def models(self) -> list[Json]:
        """The models that the server offers, as /v1/models lists them."""
        return cast(list[Json], self._object(self.get("/v1/models")).get("data") or [])

    @contextmanager
    def _errors(self, timeout: float) -> Iterator[None]:
        """Turn what httpx raises into an error for people."""
        try:
            yield
        except httpx.ConnectTimeout as error:
            raise EndpointError(f"{self.label}: no connection within the time allowed", code="timeout") from error
        except httpx.TimeoutException as error:
            raise EndpointError(
                f"{self.label}: no answer within {timeout:g} s",
                code="timeout",
                fix="a server under load or still loading answers late: look at its log, or raise --timeout",
            ) from error
        except httpx.ConnectError as error:
            raise EndpointError(
                f"{self.label}: cannot connect: {error}", code="connect", fix="check the address and that it runs"
            ) from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise EndpointError(
                f"{self.label}: not a URL that can be asked: {error}", code="url", fix="write it as http://HOST:PORT"
            ) from error
        except httpx.TransportError as error:
            raise EndpointError(
                f"{self.label}: the connection broke: {error or type(error).__name__}", code="connect"
            ) from error

    def _checked(self, response: httpx.Response, path: str) -> httpx.Response:
        if response.status_code < 300:
            return response
        try:
            text = error_text(response.json())
        except ValueError:
            text = response.text.strip()[:200]
        raise EndpointError(
            f"{self.label}: HTTP {response.status_code} for {path}: {text}",
            code=f"http-{response.status_code}",
        )

    def _object(self, response: httpx.Response) -> Json:
        return self._parse(response.text)

    def _parse(self, text: str) -> Json:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise EndpointError(
                f"{self.label}: the answer is not the OpenAI API's: {text.strip()[:120]!r}",
                code="not-the-api",
                fix="give the server's root, e.g. http://HOST:8000",
            )
        return value


def error_text(body: Any) -> str:
    """The message in an error body: OpenAI's form, vLLM's older one, Kubernetes' Status, or the body."""
    if isinstance(body, dict):
        error = body.get("error", body)
        if isinstance(error, dict) and error.get("message"):
            return str(error["message"])
        if isinstance(error, str):
            return error
    return str(body)[:200]


def at_url(url: str, *, api_key: str | None = None) -> Endpoint:
    """A server by its root URL (a trailing /v1 is understood). The key goes into the header and nowhere else."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    root = url.rstrip("/").removesuffix("/v1")
    return Endpoint(httpx.Client(headers=headers, timeout=httpx.Timeout(30, connect=10)), root, url)
