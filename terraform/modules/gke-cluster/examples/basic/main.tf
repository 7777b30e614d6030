# A private cluster with a network of its own. Pods of ai-inference/speculative may read the Hugging Face token.
provider "google" {
  project = "example-project"
  region  = "us-central1"
}

module "cluster" {
  source = "../.."

  project_id = "example-project"
  name       = "inference"
  region     = "us-central1"

  workload_secrets = { hf-token = "ai-inference/speculative" }
}

output "connect" {
  description = "How to reach the cluster."
  value       = "gcloud container clusters get-credentials ${module.cluster.name} --region ${module.cluster.region} --dns-endpoint"
}
