# terraform -chdir=terraform/platform init -backend-config=../../environments/prod-fp8/backend.platform.hcl
bucket = "my-project-terraform-state"
prefix = "prod-fp8/platform"
