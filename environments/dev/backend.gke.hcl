# terraform -chdir=terraform/gke init -backend-config=../../environments/dev/backend.gke.hcl
bucket = "my-project-dev-terraform-state"
prefix = "dev/gke"
