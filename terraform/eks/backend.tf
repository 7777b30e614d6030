# Bucket and key come from environments/ENV/backend.eks.hcl, with encryption and a lock file.
terraform {
  backend "s3" {}
}
