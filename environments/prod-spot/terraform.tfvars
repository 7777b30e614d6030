# Variables of terraform/gke. Nodes of two H100s as spot: this shape cannot be bought on demand. The pool looks in three
# zones at once (location policy ANY), so what one zone takes back, another may still have; one node more than engines lets
# a replacement start before the evicted node is gone.
project_id = "my-project"
name       = "inference-prod-spot"
region     = "us-central1"

gpu_pools = {
  h100 = {
    machine_type    = "a3-highgpu-2g"
    zones           = ["us-central1-a", "us-central1-b", "us-central1-c"]
    provisioning    = "spot"
    gpus_per_engine = 2
    max_nodes       = 4
  }
}

workload_secrets = { hf-token = "ai-inference/speculative" }
resource_labels  = { environment = "prod-spot" }
