# terraform -chdir=terraform/gke init -backend-config=../../environments/staging/backend.gke.hcl
bucket = "my-project-staging-terraform-state"
prefix = "staging/gke"
