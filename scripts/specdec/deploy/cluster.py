"""HTTP to a cluster's API server, and through its proxy to Services and pods: no port-forward, no other credentials."""

from __future__ import annotations

import ssl
import time
from collections.abc import Generator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast

import httpx

from specdec.deploy.endpoint import Endpoint
from specdec.errors import FoundWrong, SpecdecError

Object = dict[str, Any]

# Built-in groups; anything else is found under /apis.
CORE = "/api/v1"
APPS = "/apis/apps/v1"


class Unreachable(FoundWrong):
    """The API server does not answer: wrong address, no network, or the cluster has died."""


class ApiError(FoundWrong):
    """The API server refuses a request. `status` is the HTTP status, `reason` Kubernetes' word for it ("Conflict")."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message, code="kubernetes-api")
        self.status, self.reason = status, reason


class KubernetesAuth(httpx.Auth):
    """Bearer tokens from the kubeconfig, asked for at each request: an exec plug-in's token expires within the hour."""

    def __init__(self, configuration: Any) -> None:
        self.configuration = configuration

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        for setting in self.configuration.auth_settings().values():
            if setting["value"]:
                request.headers[setting["key"]] = setting["value"]
        yield request


class Cluster:
    """One API server, seen from one namespace. Objects are plain dicts as the API gives them."""

    def __init__(self, client: httpx.Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self._skew = 0.0  # seconds that the server's clock is ahead of ours

    def now(self) -> float:
        """The API server's clock (Unix seconds), by its last answer: what Leases are compared on."""
        return time.time() + self._skew

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request. Raises Unreachable where no answer comes and ApiError for an answer of 400 and above."""
        try:
            response = self._ask(method, path, options)
        except httpx.TransportError as error:
            raise Unreachable(
                f"the cluster at {self.client.base_url} does not answer: {error or type(error).__name__}",
                code="cluster-unreachable",
                fix="check that it runs and that the kubeconfig's context is the right one (kubectl cluster-info)",
            ) from error
        if date := response.headers.get("date"):
            self._skew = parsedate_to_datetime(date).timestamp() - time.time()
        if response.status_code >= 400:
            raise api_error(response)
        return response

    def _ask(self, method: str, path: str, options: Object) -> httpx.Response:
        try:
            return self.client.request(method, path, **options)
        except httpx.RemoteProtocolError:
            # The server closed a connection that idled, just as it was used again: a question may be asked twice.
            if method != "GET":
                raise
            return self.client.request(method, path, **options)

    def get(self, path: str, **params: Any) -> Object | None:
        """The object at `path`, or None where there is none."""
        try:
            response = self.request("GET", path, params=params)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        try:
            return cast(Object, response.json())
        except ValueError as error:
            raise Unreachable(
                f"what answers at {self.client.base_url} is no Kubernetes API server: {response.text[:80]!r}",
                code="not-kubernetes",
                fix="check the server's address in the kubeconfig",
            ) from error

    def items(self, path: str, **params: Any) -> list[Object]:
        """The items of a list; none where the API server does not know the kind."""
        return (self.get(path, **params) or {}).get("items") or []

    def path(self, group: str, plural: str, name: str | None = None) -> str:
        """The path of a namespaced kind, e.g. path(APPS, "statefulsets", "speculative")."""
        return f"{group}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def pods(self, labels: Mapping[str, str]) -> list[Object]:
        """Pods that carry all these labels, by name."""
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return sorted(
            self.items(self.path(CORE, "pods"), labelSelector=selector), key=lambda pod: pod["metadata"]["name"]
        )

    def events(self, name: str) -> list[Object]:
        """Events about the object of that name, oldest first."""
        found = self.items(self.path(CORE, "events"), fieldSelector=f"involvedObject.name={name}")
        return sorted(found, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")

    def logs(self, pod: str, container: str, previous: bool = False, tail: int = 200) -> list[str]:
        """The last lines of a container; none where there is no log (yet)."""
        params: Object = {"container": container, "tailLines": tail}
        if previous:
            params["previous"] = "true"
        try:
            return self.request("GET", self.path(CORE, "pods", pod) + "/log", params=params).text.splitlines()
        except ApiError:
            return []

    def service(self, name: str, port: int | str = 8000) -> Endpoint:
        """A Service's HTTP port through the API server."""
        return Endpoint(self.client, self.path(CORE, "services", f"http:{name}:{port}") + "/proxy", f"Service {name}")

    def pod(self, name: str, port: int | str = 8000) -> Endpoint:
        """A pod's HTTP port through the API server."""
        return Endpoint(self.client, self.path(CORE, "pods", f"http:{name}:{port}") + "/proxy", f"pod {name}")

    def close(self) -> None:
        self.client.close()


def api_error(response: httpx.Response) -> ApiError:
    """The API server's refusal, in its own words."""
    try:
        status = response.json()
        message, reason = str(status["message"]), str(status.get("reason", ""))
    except (ValueError, KeyError, TypeError):
        message, reason = response.text.strip()[:300], response.reason_phrase
    return ApiError(response.status_code, reason, message or f"HTTP {response.status_code}")


def connect(namespace: str, *, kubeconfig: Path | None = None, context: str | None = None) -> Cluster:
    """A cluster by kubeconfig (default: KUBECONFIG, ~/.kube/config, then the pod's own service account) and context."""
    import yaml
    from kubernetes import client as kubernetes_client
    from kubernetes import config

    configuration = kubernetes_client.Configuration()
    try:
        config.load_kube_config(
            config_file=str(kubeconfig) if kubeconfig else None, context=context, client_configuration=configuration
        )
        return Cluster(http_client(configuration), namespace)
    except (config.ConfigException, yaml.YAMLError, OSError, TypeError) as error:
        problem = str(error)
    try:
        config.load_incluster_config(client_configuration=configuration)
        return Cluster(http_client(configuration), namespace)
    except config.ConfigException:
        raise SpecdecError(
            f"no cluster to talk to: {problem}",
            code="kubeconfig",
            fix="set KUBECONFIG, or name a context of it with --context (kubectl config get-contexts)",
        ) from None


def http_client(configuration: Any) -> httpx.Client:
    """An httpx client with the address, trust, client certificate and token of a kubernetes Configuration."""
    trust = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
    if not configuration.verify_ssl:
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        trust.load_cert_chain(configuration.cert_file, configuration.key_file)
    client = httpx.Client(
        base_url=configuration.host,
        verify=trust,
        auth=KubernetesAuth(configuration),
        proxy=configuration.proxy or None,
        trust_env=False,
        # Over HTTP/1.1 the API server's proxy cuts a few in a hundred streamed answers at their first byte.
        http2=True,
        timeout=httpx.Timeout(30, connect=10),
    )
    if configuration.tls_server_name:
        # httpx takes the name for SNI and for the certificate's check per request.
        client.event_hooks["request"].append(
            lambda request: request.extensions.update(sni_hostname=configuration.tls_server_name)
        )
    return client
