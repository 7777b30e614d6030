"""From an empty project to a cluster that serves, through Terraform: for environments with terraform.tfvars."""
