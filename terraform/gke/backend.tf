# Bucket, prefix and key come from environments/ENV/backend.gke.hcl. Cloud Storage locks the state by itself.
terraform {
  backend "gcs" {}
}
