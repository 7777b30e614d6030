# terraform -chdir=terraform/eks init -backend-config=../../environments/prod-aws/backend.eks.hcl
bucket       = "my-company-terraform-state"
key          = "prod-aws/eks"
region       = "us-east-1"
encrypt      = true
use_lockfile = true
