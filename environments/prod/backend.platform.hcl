# terraform -chdir=terraform/platform init -backend-config=../../environments/prod/backend.platform.hcl
bucket = "my-project-terraform-state"
prefix = "prod/platform"
