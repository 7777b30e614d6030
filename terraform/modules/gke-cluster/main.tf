resource "google_container_cluster" "this" {
  project        = var.project_id
  name           = var.name
  location       = var.region
  node_locations = var.zones

  network           = local.network
  subnetwork        = local.subnetwork
  networking_mode   = "VPC_NATIVE"
  datapath_provider = "ADVANCED_DATAPATH"

  min_master_version  = var.min_version
  deletion_protection = var.deletion_protection
  resource_labels     = merge({ managed-by = "terraform" }, var.resource_labels)

  # The pools are resources of their own; this one exists for the minutes of the cluster's creation.
  remove_default_node_pool = true
  initial_node_count       = 1

  enable_shielded_nodes       = true
  enable_intranode_visibility = true
  enable_l4_ilb_subsetting    = true

  release_channel {
    channel = var.release_channel
  }

  ip_allocation_policy {
    cluster_secondary_range_name  = local.pods_range
    services_secondary_range_name = local.services_range
  }

  private_cluster_config {
    enable_private_nodes    = true
    enable_private_endpoint = !var.public_endpoint
    master_ipv4_cidr_block  = var.cidrs.control_plane
  }

  master_authorized_networks_config {
    gcp_public_cidrs_access_enabled = false

    dynamic "cidr_blocks" {
      for_each = var.authorized_networks
      content {
        display_name = cidr_blocks.key
        cidr_block   = cidr_blocks.value
      }
    }
  }

  control_plane_endpoints_config {
    dns_endpoint_config {
      allow_external_traffic = var.dns_endpoint
    }
  }

  master_auth {
    client_certificate_config {
      issue_client_certificate = false
    }
  }

  workload_identity_config {
    workload_pool = local.workload_pool
  }

  secret_manager_config {
    enabled = true
  }

  dynamic "database_encryption" {
    for_each = var.database_encryption_key == null ? [] : [1]
    content {
      state    = "ENCRYPTED"
      key_name = var.database_encryption_key
    }
  }

  # The chart's HTTPRoute and InferencePool need the Gateway API.
  gateway_api_config {
    channel = "CHANNEL_STANDARD"
  }

  addons_config {
    gcs_fuse_csi_driver_config {
      enabled = true
    }
    gce_persistent_disk_csi_driver_config {
      enabled = true
    }
    http_load_balancing {
      disabled = false
    }
    horizontal_pod_autoscaling {
      disabled = false
    }
  }

  logging_config {
    enable_components = ["SYSTEM_COMPONENTS", "WORKLOADS"]
  }

  monitoring_config {
    enable_components = var.monitoring_components

    managed_prometheus {
      enabled = var.managed_prometheus
    }
  }

  security_posture_config {
    mode               = "BASIC"
    vulnerability_mode = "VULNERABILITY_DISABLED"
  }

  binary_authorization {
    evaluation_mode = "PROJECT_SINGLETON_POLICY_ENFORCE"
  }

  cost_management_config {
    enabled = true
  }

  maintenance_policy {
    recurring_window {
      start_time = var.maintenance.start
      end_time   = var.maintenance.end
      recurrence = var.maintenance.recurrence
    }
  }

  # The default pool lives for minutes, but it lives with these.
  node_config {
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  lifecycle {
    ignore_changes = [node_config, initial_node_count]
  }

  depends_on = [google_project_iam_member.nodes, google_compute_router_nat.this]
}

resource "google_container_node_pool" "cpu" {
  project     = var.project_id
  cluster     = google_container_cluster.this.name
  location    = var.region
  name_prefix = "cpu-"

  initial_node_count = 1

  autoscaling {
    total_min_node_count = var.cpu_pool.min_nodes
    total_max_node_count = var.cpu_pool.max_nodes
    location_policy      = "BALANCED"
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  upgrade_settings {
    strategy        = "SURGE"
    max_surge       = 1
    max_unavailable = 0
  }

  network_config {
    enable_private_nodes = true
  }

  node_config {
    machine_type    = var.cpu_pool.machine_type
    image_type      = "COS_CONTAINERD"
    disk_size_gb    = var.cpu_pool.disk_gb
    disk_type       = "pd-balanced"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
    resource_labels = var.resource_labels
    metadata        = { disable-legacy-endpoints = "true" }

    kubelet_config {
      cpu_cfs_quota                          = true
      insecure_kubelet_readonly_port_enabled = "FALSE"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [initial_node_count]
  }
}
