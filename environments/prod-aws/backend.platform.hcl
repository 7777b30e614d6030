# cp terraform/platform/backend.s3 terraform/platform/backend_override.tf
# terraform -chdir=terraform/platform init -backend-config=../../environments/prod-aws/backend.platform.hcl
bucket       = "my-company-terraform-state"
key          = "prod-aws/platform"
region       = "us-east-1"
encrypt      = true
use_lockfile = true
