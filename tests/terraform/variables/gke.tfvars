# Pools that no environment has: every way to buy, without local SSDs, with labels of one's own.
project_id = "example"
name       = "unusual"
region     = "us-central1"
gpu_stack  = "operator"

gpu_pools = {
  spot = {
    machine_type          = "a3-highgpu-2g"
    zones                 = ["us-central1-a"]
    provisioning          = "spot"
    spot_shutdown_seconds = 120
    gpus_per_engine       = 2
  }
  flex = {
    machine_type = "a3-highgpu-4g"
    zones        = ["us-central1-a"]
    provisioning = "flex_start"
    labels       = { team = "inference" }
  }
  queued = {
    machine_type = "a3-highgpu-8g"
    zones        = ["us-central1-a"]
    provisioning = "queued"
    max_nodes    = 5
  }
  reserved = {
    machine_type = "a3-megagpu-8g"
    zones        = ["us-central1-a"]
    provisioning = "reservation"
    reservation  = "h100s"
  }
  small = {
    machine_type    = "g2-standard-48"
    zones           = ["us-central1-a"]
    local_ssd_count = 0
  }
}
