mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = {
      endpoint       = "10.1.2.3"
      master_version = "1.33.4-gke.1000000"
      master_auth = {
        cluster_ca_certificate = "Y2VydGlmaWNhdGU="
      }
      control_plane_endpoints_config = {
        dns_endpoint_config = {
          endpoint = "gke-1234.us-central1.gke.goog"
        }
      }
    }
  }

  mock_resource "google_service_account" {
    defaults = {
      email = "inference-nodes@example-project.iam.gserviceaccount.com"
    }
  }
}

variables {
  project_id = "example-project"
  name       = "inference"
  region     = "us-central1"
  gpu_pools = {
    h100 = { machine_type = "a3-highgpu-8g", zones = ["us-central1-a", "us-central1-c"], gpus_per_engine = 2 }
    l4   = { machine_type = "g2-standard-48", zones = ["us-central1-a"], provisioning = "spot" }
  }
}

run "a_cluster_with_an_h100_and_an_l4_pool" {
  assert {
    condition     = output.gpu_pools["h100"].gpus_per_node == 8 && output.gpu_pools["h100"].engines_per_node == 4 && output.gpu_pools["h100"].ephemeral_storage_gib == 6000 && output.gpu_pools["l4"].accelerator == "l4" && output.gpu_pools["l4"].max_gpus == 8
    error_message = "Four engines of TP 2 on a node of eight H100s, and L4s beside it."
  }

  assert {
    condition     = output.gpu_pools["h100"].node_labels["cloud.google.com/gke-accelerator"] == "nvidia-h100-80gb" && one(output.gpu_pools["h100"].taints).key == "nvidia.com/gpu" && length(output.gpu_pools["h100"].name) > 0
    error_message = "Pods can find the nodes."
  }

  assert {
    condition     = output.platform.cloud == "gke" && output.platform.name == "inference" && output.platform.location == "us-central1" && output.platform.project == "example-project" && output.platform.gpu_stack == "gke-managed" && one(output.platform.gpu_driver_modes) == "gke-managed" && output.platform.managed_prometheus
    error_message = "What the platform root needs."
  }

  assert {
    condition     = output.platform.host == "https://gke-1234.us-central1.gke.goog" && output.platform.ca_certificate == null
    error_message = "The DNS endpoint, with its public certificate."
  }

  assert {
    condition     = strcontains(output.connect, "get-credentials inference --region us-central1 --project example-project --dns-endpoint")
    error_message = "How to connect."
  }

  assert {
    condition     = output.network.node_service_account == "inference-nodes@example-project.iam.gserviceaccount.com" && output.network.workload_pool == "example-project.svc.id.goog" && length(output.network.cpu_pool) > 0 && length(output.network.subnetwork) > 0 && length(output.network.network) > 0
    error_message = "Network and identity."
  }
}

run "the_whole_cluster_takes_the_operator" {
  variables {
    gpu_stack                  = "operator"
    dns_endpoint               = false
    allow_gpu_pool_replacement = true
    deletion_protection        = false
  }

  assert {
    condition     = one(output.platform.gpu_driver_modes) == "operator" && output.platform.host == "https://10.1.2.3" && output.platform.ca_certificate == "certificate"
    error_message = "All pools have one driver owner; the address comes with its certificate."
  }
}

run "a_cluster_without_gpus_yet" {
  command = plan
  variables {
    gpu_pools               = {}
    zones                   = ["us-central1-a"]
    release_channel         = "STABLE"
    min_version             = "1.33"
    existing_network        = { network = "shared", subnetwork = "shared-nodes", pods_range = "pods", services_range = "services" }
    cidrs                   = { control_plane = "172.16.2.0/28" }
    authorized_networks     = { office = "203.0.113.0/24" }
    public_endpoint         = true
    managed_prometheus      = false
    cpu_pool                = { max_nodes = 3 }
    disk_kms_key            = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    database_encryption_key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    workload_buckets        = { example-models = "ai-inference/speculative" }
    workload_secrets        = { hf-token = "ai-inference/speculative" }
    resource_labels         = { team = "inference" }
  }

  assert {
    condition     = output.gpu_pools == {} && !output.platform.managed_prometheus && output.network.network == "shared"
    error_message = "Every variable reaches the cluster."
  }
}

run "refuses_two_driver_owners" {
  command = plan
  variables {
    gpu_stack = "both"
  }
  expect_failures = [var.gpu_stack]
}
