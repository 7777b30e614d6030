# terraform -chdir=terraform/gke init -backend-config=../../environments/prod-fp8/backend.gke.hcl
bucket = "my-project-terraform-state"
prefix = "prod-fp8/gke"
