# terraform -chdir=terraform/platform init -backend-config=../../environments/prod-spot/backend.platform.hcl
bucket = "my-project-terraform-state"
prefix = "prod-spot/platform"
