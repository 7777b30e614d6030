# terraform -chdir=terraform/platform init -backend-config=../../environments/dev/backend.platform.hcl
bucket = "my-project-dev-terraform-state"
prefix = "dev/platform"
