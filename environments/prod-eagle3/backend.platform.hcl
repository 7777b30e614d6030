# terraform -chdir=terraform/platform init -backend-config=../../environments/prod-eagle3/backend.platform.hcl
bucket = "my-project-terraform-state"
prefix = "prod-eagle3/platform"
