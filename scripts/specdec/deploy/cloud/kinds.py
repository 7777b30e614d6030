"""Several clouds' errors in one language: what went wrong, whoever says it.

Words of Google Cloud: https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability and
https://cloud.google.com/apis/design/errors. Of AWS: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
and https://docs.aws.amazon.com/eks/latest/userguide/troubleshooting.html. Of Terraform: its backends and providers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One way to fail. `fix` is what helps on any cloud; who knows more says more."""

    name: str
    code: str
    title: str
    fix: str
    pattern: re.Pattern[str]


def _kind(name: str, code: str, title: str, fix: str, *patterns: str) -> Kind:
    return Kind(name, code, title, fix, re.compile("|".join(patterns), re.IGNORECASE))


# The first that matches counts: the narrow before the wide (a stock-out may mention a quota, a lock is a conflict).
KINDS: tuple[Kind, ...] = (
    _kind(
        "locked", "SD862", "the state is locked", "wait for its holder; terraform force-unlock ID where that is dead",
        r"acquiring the state lock", r"state blob is already locked", r"\bLock Info:",
    ),
    _kind(
        "stale", "SD877", "the state has moved on since the plan was made", "plan again: --from plan",
        r"Saved plan is stale",
    ),
    _kind(
        "stock_out", "SD863", "the cloud has no such machine left at the moment",
        "another zone, another way to buy (spot, flex_start, a reservation), or later: a quota does not help",
        r"(?:ZONE|REGION)_RESOURCE_POOL_EXHAUSTED", r"\bRESOURCE_POOL_EXHAUSTED",
        r"GCE_STOCKOUT|GPU_STOCKOUT|GCE out of resources",
        r"does not have enough resources available to fulfill", r"insufficient(?:Instance| )?Capacity\b",
        r"InsufficientHostCapacity", r"InsufficientReservedInstanceCapacity", r"UnfulfillableCapacity",
        r"do not have sufficient \S+ capacity", r"currently unavailable in the \S+ zone",
        r"Spot capacity .*not available",
    ),
    _kind(
        "api_off", "SD855", "an API is not enabled", "enable it; it takes a minute to be known everywhere",
        r"SERVICE_DISABLED", r"accessNotConfigured", r"has not been used in project \S+ before or it is disabled",
        r"API \[\S+\] not enabled",
    ),
    _kind(
        "quota", "SD856", "a quota is used up", "ask for more (days, not minutes), or use fewer or other machines",
        r"QUOTA_EXCEEDED", r"quotaExceeded", r"Quota '[^']+' exceeded", r"exceeds? (?:the )?quota",
        r"quota .{0,80}exceeded",
        r"insufficient regional quota", r"Insufficient quota", r"VcpuLimitExceeded", r"MaxSpotInstanceCountExceeded",
        r"ServiceQuotaExceeded", r"\w*LimitExceeded(?:Exception)?\b", r"have requested more vCPU capacity",
    ),
    _kind(
        "credentials", "SD853", "the cloud does not know who asks", "log in again",
        r"could not find default credentials", r"default credentials were not found", r"invalid_grant", r"invalid_rapt",
        r"Reauthentication (?:is )?(?:needed|required)", r"No valid credential sources? found",
        r"Unable to locate credentials",
        r"NoCredentials", r"ExpiredToken", r"RequestExpired", r"TokenRefreshRequired",
        r"security token .{0,40}(?:expired|invalid)",
        r"InvalidClientTokenId", r"UnrecognizedClient", r"SignatureDoesNotMatch", r"AuthFailure",
        r"\bUNAUTHENTICATED\b",
        r"Error (?:refreshing|loading) SSO", r"token (?:has|is) expired", r"Error 401|HTTP 401|StatusCode: 401",
        r"invalid authentication credentials",
    ),
    _kind(
        "protected", "SD870", "it is protected from deletion",
        "deletion_protection = false and allow_gpu_pool_replacement = true, apply, and only then destroy",
        r"deletion_protection", r"deletion protection", r"deletion_policy", r"OperationNotPermitted.*terminat",
    ),
    _kind(
        "in_use", "SD878", "something else still uses it",
        "what uses it goes first: a load balancer, a firewall rule or a disk that Kubernetes made",
        r"resourceInUseByAnotherResource", r"DependencyViolation", r"is already being used by", r"has dependencies",
    ),
    _kind(
        "taken", "SD859", "the name is taken", "another name, or terraform import of what is there",
        r"alreadyExists", r"ALREADY_EXISTS", r"already exists", r"ResourceInUse", r"BucketAlready(?:Exists|OwnedByYou)",
        r"EntityAlreadyExists", r"Error 409\b(?!.*try again)", r"InvalidPermission\.Duplicate",
    ),
    _kind(
        "permission", "SD864", "this account may not do that", "a role that allows it, for the account that deploys",
        r"PERMISSION_DENIED", r"Required '[^']+' permission", r"AccessDenied", r"Access ?Denied",
        r"UnauthorizedOperation",
        r"is not authorized to perform", r"does not have \S+ access", r"caller does not have permission",
        r"\bforbidden\b",
        r"Error 403|StatusCode: 403", r"does not have permission",
    ),
    _kind(
        "bucket", "SD851", "the bucket of the state does not exist", "make it first: it outlives what it describes",
        r"NoSuchBucket", r"bucket doesn'?t exist", r"S3 bucket .* does not exist", r"specified bucket does not exist",
    ),
    _kind(
        "not_found", "SD875", "it does not exist", "check the name, the project or account, and the region",
        r"notFound\b", r"NOT_FOUND", r"ResourceNotFound", r"Error 404|StatusCode: 404", r"NoSuchEntity",
        r"Invalid\w+ID\.NotFound", r"was not found",
    ),
    _kind(
        "timeout", "SD868", "it took too long, or nobody answered", "try again: what is there is not made twice",
        r"timeout while waiting", r"context deadline exceeded", r"i/o timeout", r"TLS handshake timeout", r"timed out",
        r"connection (?:refused|reset)", r"no such host", r"EndpointConnectionError",
        r"Could not connect to the endpoint",
        r"Throttl", r"RequestLimitExceeded", r"rateLimitExceeded", r"\bUNAVAILABLE\b", r"DEADLINE_EXCEEDED",
    ),
)  # fmt: skip
UNKNOWN = Kind("unknown", "SD869", "Terraform failed", "what it said is above", re.compile(r"$^"))
# AWS names throttling like a limit on resources.
THROTTLED = re.compile(r"RequestLimitExceeded|rateLimitExceeded|Throttl", re.IGNORECASE)
BY_NAME = {kind.name: kind for kind in (*KINDS, UNKNOWN)}


def classify(text: str) -> Kind:
    """The kind of an error by its words; UNKNOWN where none fits."""
    if THROTTLED.search(text):
        return BY_NAME["timeout"]
    return next((kind for kind in KINDS if kind.pattern.search(text)), UNKNOWN)


ZONE = re.compile(r"\b(?:[a-z]+-[a-z]+\d+-[a-z]|[a-z]{2}(?:-[a-z]+)+-\d[a-z])\b")


def zones_in(text: str) -> list[str]:
    """Zones that a text names, in order: us-central1-a, us-east-1b."""
    return list(dict.fromkeys(ZONE.findall(text)))


@dataclass(frozen=True)
class Lock:
    """Who holds a state: what Terraform says of a lock that it does not get."""

    id: str
    who: str
    created: str
    operation: str
    path: str

    def __str__(self) -> str:
        doing = self.operation.removeprefix("OperationType").lower() or "something"
        return f"{self.who or 'somebody'} has held it since {self.created[:19] or 'unknown'} UTC for {doing}"


def lock_in(text: str) -> Lock | None:
    """The lock that an error describes, None where it describes none."""
    found = dict(re.findall(r"^\W*(ID|Path|Operation|Who|Created):[ \t]*(.*?)[ \t]*$", text, re.MULTILINE))
    if not found.get("ID"):
        return None
    return Lock(*(found.get(key, "") for key in ("ID", "Who", "Created", "Operation", "Path")))
