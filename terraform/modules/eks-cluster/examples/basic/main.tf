# A private cluster with a network of its own. The platform role administers it.
provider "aws" {
  region = "us-east-1"
}

module "cluster" {
  source = "../.."

  name   = "inference"
  zones  = ["us-east-1a", "us-east-1b"]
  admins = { platform = "arn:aws:iam::123456789012:role/platform" }
}

output "connect" {
  description = "How to reach the cluster."
  value       = "aws eks update-kubeconfig --name ${module.cluster.name} --region us-east-1"
}
