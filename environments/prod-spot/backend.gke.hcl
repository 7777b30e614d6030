# terraform -chdir=terraform/gke init -backend-config=../../environments/prod-spot/backend.gke.hcl
bucket = "my-project-terraform-state"
prefix = "prod-spot/gke"
