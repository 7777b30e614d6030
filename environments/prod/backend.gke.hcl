# terraform -chdir=terraform/gke init -backend-config=../../environments/prod/backend.gke.hcl
bucket = "my-project-terraform-state"
prefix = "prod/gke"
