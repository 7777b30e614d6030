# Variables of terraform/gke. One L4, none while nothing runs; spot, because a developer can wait.
project_id = "my-project-dev"
name       = "inference-dev"
region     = "us-central1"

gpu_pools = {
  l4 = {
    machine_type = "g2-standard-12"
    zones        = ["us-central1-a", "us-central1-b", "us-central1-c"]
    provisioning = "spot"
    max_nodes    = 1
  }
}

cpu_pool         = { max_nodes = 3 }
workload_secrets = { hf-token = "ai-inference/speculative" }
resource_labels  = { environment = "dev" }
