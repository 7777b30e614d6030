# terraform -chdir=terraform/platform init -backend-config=../../environments/staging/backend.platform.hcl
bucket = "my-project-staging-terraform-state"
prefix = "staging/platform"
