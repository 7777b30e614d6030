# Variables of terraform/gke. One node of two L4, a second one while a change is tried; none while nothing runs.
project_id = "my-project-staging"
name       = "inference-staging"
region     = "us-central1"

gpu_pools = {
  l4 = {
    machine_type    = "g2-standard-24"
    zones           = ["us-central1-a", "us-central1-b", "us-central1-c"]
    provisioning    = "on_demand"
    gpus_per_engine = 2
    max_nodes       = 2
  }
}

cpu_pool         = { max_nodes = 4 }
workload_secrets = { hf-token = "ai-inference/speculative" }
resource_labels  = { environment = "staging" }
