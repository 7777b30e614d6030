mock_provider "google" {
  mock_resource "google_container_cluster" {
    defaults = {
      endpoint = "10.1.2.3"
      master_auth = {
        cluster_ca_certificate = "Y2VydGlmaWNhdGU="
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
}

run "a_cluster_is_private_and_hardened_by_default" {
  assert {
    condition     = google_container_cluster.this.private_cluster_config[0].enable_private_nodes && google_container_cluster.this.private_cluster_config[0].enable_private_endpoint && google_container_cluster.this.private_cluster_config[0].master_ipv4_cidr_block == "172.16.0.0/28"
    error_message = "Nodes and control plane are private."
  }

  assert {
    condition     = length(google_container_cluster.this.master_authorized_networks_config) == 1 && length(google_container_cluster.this.master_authorized_networks_config[0].cidr_blocks) == 0
    error_message = "No network is authorized unless named."
  }

  assert {
    condition     = google_container_cluster.this.deletion_protection && google_container_cluster.this.remove_default_node_pool && google_container_cluster.this.location == "us-central1" && google_container_cluster.this.name == "inference" && google_container_cluster.this.project == "example-project"
    error_message = "Protected, regional, without the default pool."
  }

  assert {
    condition     = google_container_cluster.this.datapath_provider == "ADVANCED_DATAPATH" && google_container_cluster.this.workload_identity_config[0].workload_pool == "example-project.svc.id.goog" && google_container_cluster.this.enable_shielded_nodes && google_container_cluster.this.release_channel[0].channel == "REGULAR"
    error_message = "Dataplane V2, Workload Identity, shielded nodes, a release channel."
  }

  assert {
    condition     = google_container_cluster.this.addons_config[0].gcs_fuse_csi_driver_config[0].enabled && google_container_cluster.this.secret_manager_config[0].enabled && google_container_cluster.this.gateway_api_config[0].channel == "CHANNEL_STANDARD"
    error_message = "GCS FUSE, Secret Manager and the Gateway API are there."
  }

  assert {
    condition     = google_container_cluster.this.monitoring_config[0].managed_prometheus[0].enabled && contains(google_container_cluster.this.monitoring_config[0].enable_components, "SYSTEM_COMPONENTS")
    error_message = "Managed Prometheus by default."
  }

  assert {
    condition     = google_container_cluster.this.control_plane_endpoints_config[0].dns_endpoint_config[0].allow_external_traffic && google_container_cluster.this.maintenance_policy[0].recurring_window[0].recurrence == "FREQ=WEEKLY;BYDAY=SA,SU" && length(google_container_cluster.this.database_encryption) == 0
    error_message = "DNS endpoint, weekend upgrades, Google's encryption."
  }

  assert {
    condition     = google_container_cluster.this.timeouts.create == "60m"
    error_message = "An hour for the cluster."
  }

  assert {
    condition     = google_compute_subnetwork.this[0].ip_cidr_range == "10.0.0.0/20" && google_compute_subnetwork.this[0].private_ip_google_access && { for range in google_compute_subnetwork.this[0].secondary_ip_range : range.range_name => range.ip_cidr_range } == { pods = "10.4.0.0/14", services = "10.8.0.0/20" }
    error_message = "The subnetwork and its ranges."
  }

  assert {
    condition     = google_compute_router_nat.this[0].source_subnetwork_ip_ranges_to_nat == "ALL_SUBNETWORKS_ALL_IP_RANGES" && google_container_cluster.this.ip_allocation_policy[0].cluster_secondary_range_name == "pods" && google_container_cluster.this.ip_allocation_policy[0].services_secondary_range_name == "services"
    error_message = "NAT for private nodes; pods and services use the ranges."
  }

  assert {
    condition     = google_service_account.nodes.account_id == "inference-nodes" && keys(google_project_iam_member.nodes) == ["roles/artifactregistry.reader", "roles/container.defaultNodeServiceAccount"]
    error_message = "Nodes have an account of their own with two narrow roles."
  }

  assert {
    condition     = length(google_storage_bucket_iam_member.workload) == 0 && length(google_secret_manager_secret_iam_member.workload) == 0
    error_message = "No access for pods unless named."
  }

  assert {
    condition     = google_container_node_pool.cpu.autoscaling[0].total_min_node_count == 1 && google_container_node_pool.cpu.autoscaling[0].total_max_node_count == 6 && google_container_node_pool.cpu.node_config[0].machine_type == "e2-standard-4" && google_container_node_pool.cpu.node_config[0].disk_size_gb == 100 && length(google_container_node_pool.cpu.node_config[0].taint) == 0
    error_message = "One untainted CPU pool."
  }

  assert {
    condition     = google_container_node_pool.cpu.node_config[0].shielded_instance_config[0].enable_secure_boot && google_container_node_pool.cpu.node_config[0].workload_metadata_config[0].mode == "GKE_METADATA" && google_container_node_pool.cpu.network_config[0].enable_private_nodes
    error_message = "CPU nodes are shielded, private, and hide their credentials."
  }

  assert {
    condition     = output.name == "inference" && output.region == "us-central1" && output.endpoint == "10.1.2.3" && output.ca_certificate == "certificate" && output.workload_pool == "example-project.svc.id.goog" && output.node_service_account == "inference-nodes@example-project.iam.gserviceaccount.com"
    error_message = "Outputs that the platform needs."
  }

  assert {
    condition     = output.network == google_compute_network.this[0].id && output.subnetwork == google_compute_subnetwork.this[0].id && output.cpu_pool == google_container_node_pool.cpu.name && output.kubernetes_version == google_container_cluster.this.master_version && output.dns_endpoint != null
    error_message = "Outputs of what was made."
  }
}

run "every_choice_reaches_the_cluster" {
  command = plan

  variables {
    zones                   = ["us-central1-a", "us-central1-b"]
    release_channel         = "RAPID"
    min_version             = "1.32.2-gke.1652000"
    cidrs                   = { nodes = "10.16.0.0/20", pods = "10.20.0.0/14", services = "10.24.0.0/20", control_plane = "172.16.1.0/28" }
    authorized_networks     = { office = "203.0.113.0/24" }
    public_endpoint         = true
    dns_endpoint            = false
    managed_prometheus      = false
    monitoring_components   = ["SYSTEM_COMPONENTS", "DCGM"]
    cpu_pool                = { machine_type = "n2-standard-8", min_nodes = 2, max_nodes = 9, disk_gb = 50 }
    maintenance             = { start = "2026-01-01T00:00:00Z", end = "2026-01-01T08:00:00Z", recurrence = "FREQ=DAILY" }
    database_encryption_key = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    deletion_protection     = false
    workload_buckets        = { example-models = "ai-inference/speculative" }
    workload_secrets        = { hf-token = "ai-inference/speculative" }
    resource_labels         = { team = "inference" }
  }

  assert {
    condition     = google_container_cluster.this.node_locations == toset(["us-central1-a", "us-central1-b"]) && google_container_cluster.this.release_channel[0].channel == "RAPID" && google_container_cluster.this.min_master_version == "1.32.2-gke.1652000" && !google_container_cluster.this.deletion_protection
    error_message = "Zones, channel, version, protection."
  }

  assert {
    condition     = !google_container_cluster.this.private_cluster_config[0].enable_private_endpoint && google_container_cluster.this.private_cluster_config[0].master_ipv4_cidr_block == "172.16.1.0/28" && one(google_container_cluster.this.master_authorized_networks_config[0].cidr_blocks).cidr_block == "203.0.113.0/24"
    error_message = "A public endpoint for one office."
  }

  assert {
    condition     = google_compute_subnetwork.this[0].ip_cidr_range == "10.16.0.0/20" && { for range in google_compute_subnetwork.this[0].secondary_ip_range : range.range_name => range.ip_cidr_range } == { pods = "10.20.0.0/14", services = "10.24.0.0/20" }
    error_message = "Ranges."
  }

  assert {
    condition     = !google_container_cluster.this.control_plane_endpoints_config[0].dns_endpoint_config[0].allow_external_traffic && output.dns_endpoint == null
    error_message = "No DNS endpoint."
  }

  assert {
    condition     = !google_container_cluster.this.monitoring_config[0].managed_prometheus[0].enabled && contains(google_container_cluster.this.monitoring_config[0].enable_components, "DCGM")
    error_message = "Monitoring."
  }

  assert {
    condition     = google_container_node_pool.cpu.node_config[0].machine_type == "n2-standard-8" && google_container_node_pool.cpu.autoscaling[0].total_min_node_count == 2 && google_container_node_pool.cpu.autoscaling[0].total_max_node_count == 9 && google_container_node_pool.cpu.node_config[0].disk_size_gb == 50
    error_message = "CPU pool."
  }

  assert {
    condition     = google_container_cluster.this.database_encryption[0].state == "ENCRYPTED" && google_container_cluster.this.database_encryption[0].key_name == "projects/p/locations/l/keyRings/r/cryptoKeys/k" && google_container_cluster.this.maintenance_policy[0].recurring_window[0].recurrence == "FREQ=DAILY" && google_container_cluster.this.maintenance_policy[0].recurring_window[0].start_time == "2026-01-01T00:00:00Z"
    error_message = "Encryption and maintenance."
  }

  assert {
    condition     = google_storage_bucket_iam_member.workload["example-models"].member == "serviceAccount:example-project.svc.id.goog[ai-inference/speculative]" && google_storage_bucket_iam_member.workload["example-models"].role == "roles/storage.objectViewer"
    error_message = "Pods may read the bucket and no more."
  }

  assert {
    condition     = google_secret_manager_secret_iam_member.workload["hf-token"].member == "serviceAccount:example-project.svc.id.goog[ai-inference/speculative]" && google_secret_manager_secret_iam_member.workload["hf-token"].role == "roles/secretmanager.secretAccessor"
    error_message = "Pods may read the token and no more."
  }

  assert {
    condition     = google_container_cluster.this.resource_labels["team"] == "inference" && google_container_node_pool.cpu.node_config[0].resource_labels["team"] == "inference"
    error_message = "Labels for billing."
  }
}

run "a_network_of_your_own_is_used" {
  command = plan

  variables {
    existing_network = { network = "shared", subnetwork = "shared-nodes", pods_range = "shared-pods", services_range = "shared-services" }
  }

  assert {
    condition     = length(google_compute_network.this) == 0 && length(google_compute_subnetwork.this) == 0 && length(google_compute_router.this) == 0 && length(google_compute_router_nat.this) == 0
    error_message = "No network is made."
  }

  assert {
    condition     = google_container_cluster.this.network == "shared" && google_container_cluster.this.subnetwork == "shared-nodes" && google_container_cluster.this.ip_allocation_policy[0].cluster_secondary_range_name == "shared-pods" && google_container_cluster.this.ip_allocation_policy[0].services_secondary_range_name == "shared-services"
    error_message = "The cluster is in your network."
  }
}

run "refuses_a_name_too_long_for_its_service_account" {
  command = plan
  variables {
    name = "a-cluster-with-a-name-that-is-much-too-long-for-gke"
  }
  expect_failures = [var.name]
}

run "refuses_a_zone_as_region" {
  command = plan
  variables {
    region = "us-central1-a"
  }
  expect_failures = [var.region]
}

run "refuses_zones_of_another_region" {
  command = plan
  variables {
    zones = ["us-east4-a"]
  }
  expect_failures = [var.zones]
}

run "refuses_no_release_channel" {
  command = plan
  variables {
    release_channel = "UNSPECIFIED"
  }
  expect_failures = [var.release_channel]
}

run "refuses_a_version_that_is_none" {
  command = plan
  variables {
    min_version = "latest"
  }
  expect_failures = [var.min_version]
}

run "refuses_ranges_that_overlap" {
  command = plan
  variables {
    cidrs = { pods = "10.0.0.0/14" }
  }
  expect_failures = [var.cidrs]
}

run "refuses_a_range_that_is_none" {
  command = plan
  variables {
    cidrs = { services = "10.8.0.0" }
  }
  expect_failures = [var.cidrs]
}

run "refuses_a_control_plane_range_of_another_size" {
  command = plan
  variables {
    cidrs = { control_plane = "172.16.0.0/24" }
  }
  expect_failures = [var.cidrs]
}

run "refuses_the_whole_internet" {
  command = plan
  variables {
    authorized_networks = { all = "0.0.0.0/0" }
  }
  expect_failures = [var.authorized_networks]
}

run "refuses_a_public_endpoint_for_nobody_in_particular" {
  command = plan
  variables {
    public_endpoint = true
  }
  expect_failures = [var.public_endpoint]
}

run "refuses_monitoring_without_the_system" {
  command = plan
  variables {
    monitoring_components = ["POD"]
  }
  expect_failures = [var.monitoring_components]
}

run "refuses_a_cluster_of_gpu_pools_alone" {
  command = plan
  variables {
    cpu_pool = { min_nodes = 0 }
  }
  expect_failures = [var.cpu_pool]
}

run "refuses_gpus_in_the_cpu_pool" {
  command = plan
  variables {
    cpu_pool = { machine_type = "g2-standard-4" }
  }
  expect_failures = [var.cpu_pool]
}

run "refuses_a_bucket_for_nobody" {
  command = plan
  variables {
    workload_buckets = { example-models = "speculative" }
  }
  expect_failures = [var.workload_buckets]
}

run "refuses_a_secret_for_nobody" {
  command = plan
  variables {
    workload_secrets = { hf-token = "speculative" }
  }
  expect_failures = [var.workload_secrets]
}
