# terraform -chdir=terraform/gke init -backend-config=../../environments/prod-eagle3/backend.gke.hcl
bucket = "my-project-terraform-state"
prefix = "prod-eagle3/gke"
