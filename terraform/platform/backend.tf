# A state of its own: the cluster can be planned without the platform, and the platform only against a cluster that exists.
# Values come from environments/ENV/backend.platform.hcl. On AWS see backend.s3.
terraform {
  backend "gcs" {}
}
