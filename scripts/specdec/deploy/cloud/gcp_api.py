"""Google's REST APIs with the credentials that Terraform finds too, and their refusals in words."""

from __future__ import annotations

from typing import Any

from specdec.deploy.cloud.clouds import Findings
from specdec.deploy.cloud.failures import login

SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class Refused(Exception):
    """An answer of 400 and above."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"Error {status}: {text}")
        self.status = status


class Api:
    """`session` stands for an AuthorizedSession."""

    def __init__(self, session: Any = None) -> None:
        self.session, self.credentials = session, None

    def login(self, findings: Findings) -> bool:
        """Whether there are credentials, and they can be renewed; where not, it is among the findings."""
        if self.session is not None:
            return True
        import google.auth
        from google.auth import exceptions
        from google.auth.transport.requests import AuthorizedSession, Request

        try:
            credentials, _ = google.auth.default(scopes=[SCOPE])
            credentials.refresh(Request())
        except exceptions.GoogleAuthError as error:
            text = " ".join(str(error).split())[:300]
            if isinstance(error, exceptions.TransportError):
                findings.add("SD868", "credentials", f"Google does not answer: {text}", "check network and proxy")
            elif isinstance(error, exceptions.RefreshError):
                findings.add("SD853", "credentials", f"they are expired or withdrawn: {text}", login("gke"))
            else:
                findings.add("SD853", "credentials", f"there are none: {text}", login("gke"))
            return False
        self.credentials, self.session = credentials, AuthorizedSession(credentials)
        return True

    def get(self, url: str, **params: str) -> dict[str, Any]:
        """Raises Refused, and what `errors` names."""
        return self.ask("GET", url, params=params)

    def ask(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        """One request. Raises Refused, and what `errors` names."""
        answer = self.session.request(method, url, timeout=30, **options)
        if answer.status_code >= 400:
            raise Refused(answer.status_code, _said(answer))
        return dict(answer.json())


def _said(answer: Any) -> str:
    """Google's own words, with the reason that tells one 403 from another."""
    try:
        problem = answer.json()["error"]
        details = [*problem.get("errors", []), *problem.get("details", [])]
        reason = " ".join(str(one.get("reason", "")) for one in details)
        return f"{problem.get('status', '')} {problem.get('message', '')} {reason}".strip()
    except (ValueError, KeyError, TypeError, AttributeError):
        return str(answer.text[:300])


def errors() -> tuple[type[Exception], ...]:
    """What Google's libraries raise for an answer or for none."""
    import requests
    from google.api_core import exceptions
    from google.auth import exceptions as auth

    return (Refused, exceptions.GoogleAPIError, auth.GoogleAuthError, requests.RequestException)
