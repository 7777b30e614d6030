"""Errors as Google Cloud, AWS and Terraform word them, each of one kind."""

from __future__ import annotations

import pytest
from specdec.deploy.cloud import kinds
from specdec.deploy.cloud.codes import NAMES

SAID = [
    # Google Cloud
    ("stock_out", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone 'projects/p/zones/us-central1-a' does "
     "not have enough "
                  "resources available to fulfill the request, '(resource type:compute)'."),
    ("stock_out", "[GCE_STOCKOUT]: Instance 'gke-x' creation failed: The zone does not have enough resources "
     "available to "
                  "fulfill the request. Try a different zone, or try again later."),
    ("quota", "Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 0.0 in region us-central1."),
    ("quota", "googleapi: Error 403: Insufficient regional quota to satisfy request: resource "
     "\"PREEMPTIBLE_NVIDIA_L4_GPUS\""),
    ("quota", "QUOTA_EXCEEDED: Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."),
    ("api_off", "googleapi: Error 403: Kubernetes Engine API has not been used in project my-project before or it is "
                "disabled., accessNotConfigured"),
    ("permission", "googleapi: Error 403: Required 'compute.networks.create' permission for 'projects/p', forbidden"),
    ("permission", "PERMISSION_DENIED: The caller does not have permission"),
    ("credentials", "google: could not find default credentials. See https://cloud.google.com/docs/authentication"),
    ("credentials", 'oauth2: "invalid_grant" "reauth related error (invalid_rapt)" "https://support.google.com"'),
    ("credentials", "Reauthentication is needed. Please run `gcloud auth application-default login` to "
     "reauthenticate."),
    ("bucket", "Failed to get existing workspaces: querying Cloud Storage failed: storage: bucket doesn't exist"),
    ("taken", "googleapi: Error 409: Already exists: projects/p/locations/us-central1/clusters/inference., "
     "alreadyExists"),
    ("not_found", "googleapi: Error 404: The resource 'projects/p/global/networks/x' was not found, notFound"),
    ("protected", "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed"),
    ("timeout", "timeout while waiting for state to become 'DONE' (last state: 'RUNNING', timeout: 40m0s)"),
    ("stock_out", "Node scale up in zones us-central1-c associated with this pod failed: GCE out of resources. "
                  "Pod is at risk of not being scheduled."),
    ("quota", "Node scale up in zones us-central1-c associated with this pod failed: GCE quota exceeded."),
    # AWS
    ("stock_out", "InsufficientInstanceCapacity: We currently do not have sufficient g5.48xlarge capacity in the "
                  "Availability Zone you requested (us-east-1a)."),
    ("stock_out", "UnfulfillableCapacity - There is no capacity available that matches your request."),
    ("quota", "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 0 "
     "allows for the "
              "instance bucket that the specified instance type belongs to."),
    ("quota", "MaxSpotInstanceCountExceeded: Max spot instance count exceeded"),
    ("quota", "VpcLimitExceeded: The maximum number of VPCs has been reached."),
    ("quota", "ResourceLimitExceededException: Nodegroup limit exceeded for cluster."),
    ("credentials", "ExpiredToken: The security token included in the request is expired"),
    ("credentials", "No valid credential sources found. Please see "
     "https://registry.terraform.io/providers/hashicorp/aws"),
    ("credentials", "An error occurred (InvalidClientTokenId) when calling the GetCallerIdentity operation"),
    ("credentials", "Unable to locate credentials"),
    ("permission", "AccessDeniedException: User: arn:aws:iam::1:user/u is not authorized to perform: "
     "eks:CreateCluster"),
    ("permission", "UnauthorizedOperation: You are not authorized to perform this operation."),
    ("bucket", 'Error: S3 bucket "my-state" does not exist.'),
    ("bucket", "NoSuchBucket: The specified bucket does not exist"),
    ("taken", "ResourceInUseException: Cluster already exists with name: inference"),
    ("taken", "EntityAlreadyExists: Role with name inference-nodes already exists."),
    ("not_found", "ResourceNotFoundException: No cluster found for name: inference."),
    ("timeout", "RequestLimitExceeded: Request limit exceeded."),
    ("timeout", 'Could not connect to the endpoint URL: "https://eks.us-east-1.amazonaws.com/"'),
    # Terraform
    ("locked", "Error acquiring the state lock\nError message: writing \"gs://b/x.tflock\" failed: googleapi: "
     "Error 412: "
               "At least one of the pre-conditions you specified did not hold., conditionNotMet\nLock Info:\n  ID: 17"),
    ("locked", "Error acquiring the state lock\noperation error S3: PutObject, https response error StatusCode: 412, "
               "PreconditionFailed"),
    ("in_use", "googleapi: Error 400: The network resource 'projects/p/global/networks/x' is already being used by "
               "'projects/p/global/firewalls/k8s-fw-1', resourceInUseByAnotherResource"),
    ("in_use", "DependencyViolation: The vpc 'vpc-1' has dependencies and cannot be deleted."),
    ("stale", "Saved plan is stale\nThe given plan file can no longer be applied because the state was changed"),
    ("unknown", "Invalid value for variable: name is a lower-case DNS label"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), SAID, ids=[f"{kind}-{index}" for index, (kind, _) in enumerate(SAID)])
def test_an_error_is_of_one_kind(kind: str, text: str) -> None:
    assert kinds.classify(text).name == kind


def test_every_kind_is_exercised_and_has_a_code_of_its_own() -> None:
    assert {kind for kind, _ in SAID} == set(kinds.BY_NAME)
    codes = [kind.code for kind in kinds.BY_NAME.values()]
    assert len(codes) == len(set(codes))
    assert set(codes) <= set(NAMES)


def test_a_lock_says_who_since_when_and_for_what() -> None:
    text = """Error message: resource temporarily unavailable
Lock Info:
  ID:        35e57b08-73a2-22cf-da10-7b65bbccfeb0
  Path:      gs://my-state/prod/gke/default.tflock
  Operation: OperationTypeApply
  Who:       ann@laptop
  Version:   1.11.4
  Created:   2026-12-03 07:38:46.181558069 +0000 UTC
  Info:

Terraform acquires a state lock to protect the state from being written"""
    lock = kinds.lock_in(text)
    assert lock is not None
    assert lock.id == "35e57b08-73a2-22cf-da10-7b65bbccfeb0"
    assert str(lock) == "ann@laptop has held it since 2026-12-03 07:38:46 UTC for apply"
    assert kinds.lock_in("Error: the moon is full") is None


@pytest.mark.parametrize(
    ("text", "zones"),
    [
        ("The zone 'projects/p/zones/us-central1-a' does not have enough", ["us-central1-a"]),
        ("capacity in us-east-1a and us-east-1b, us-east-1a", ["us-east-1a", "us-east-1b"]),
        ("europe-west4-b; northamerica-northeast1-c; ap-southeast-2c; us-gov-west-1b",
         ["europe-west4-b", "northamerica-northeast1-c", "ap-southeast-2c", "us-gov-west-1b"]),
        ("region us-central1, machine a3-highgpu-8g", []),
    ],
)  # fmt: skip
def test_zones_are_found_in_a_text(text: str, zones: list[str]) -> None:
    assert kinds.zones_in(text) == zones
