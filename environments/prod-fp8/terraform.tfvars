# Variables of terraform/gke. Nodes of eight H100s, each for two engines of four GPUs; none while nothing runs.
project_id = "my-project"
name       = "inference-prod-fp8"
region     = "us-central1"

gpu_pools = {
  h100 = {
    machine_type    = "a3-highgpu-8g"
    zones           = ["us-central1-a", "us-central1-b", "us-central1-c"]
    provisioning    = "on_demand"
    gpus_per_engine = 4
    max_nodes       = 2
  }
}

workload_secrets = { hf-token = "ai-inference/speculative" }
resource_labels  = { environment = "prod-fp8" }
