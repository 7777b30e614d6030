mock_provider "google" {}

variables {
  project_id      = "example-project"
  cluster         = "inference"
  region          = "us-central1"
  name            = "h100"
  zones           = ["us-central1-a", "us-central1-c"]
  machine_type    = "a3-highgpu-8g"
  provisioning    = "on_demand"
  service_account = "nodes@example-project.iam.gserviceaccount.com"
}

run "an_h100_pool_is_safe_by_default" {
  command = plan

  assert {
    condition     = google_container_node_pool.this.node_config[0].guest_accelerator[0].type == "nvidia-h100-80gb" && google_container_node_pool.this.node_config[0].guest_accelerator[0].count == 8
    error_message = "An a3-highgpu-8g has eight nvidia-h100-80gb."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].guest_accelerator[0].gpu_driver_installation_config[0].gpu_driver_version == "LATEST"
    error_message = "The driver mode must be explicit."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].ephemeral_storage_local_ssd_config[0].local_ssd_count == 16
    error_message = "Sixteen local SSDs back the ephemeral storage."
  }

  assert {
    condition     = one(google_container_node_pool.this.node_config[0].taint) == { key = "nvidia.com/gpu", value = "present", effect = "NO_SCHEDULE" }
    error_message = "The GPU taint must be declared as GKE would add it."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].labels["vllm-speculative/accelerator"] == "h100-80gb" && !contains(keys(google_container_node_pool.this.node_config[0].labels), "gke-no-default-nvidia-gpu-device-plugin")
    error_message = "The accelerator's label is set; GKE's device plugin is not switched off."
  }

  assert {
    condition     = google_container_node_pool.this.initial_node_count == 0 && google_container_node_pool.this.autoscaling[0].total_min_node_count == 0 && google_container_node_pool.this.autoscaling[0].total_max_node_count == 2 && google_container_node_pool.this.autoscaling[0].location_policy == "ANY"
    error_message = "The pool grows from zero, wherever there are GPUs."
  }

  assert {
    condition     = google_container_node_pool.this.upgrade_settings[0].max_surge == 0 && google_container_node_pool.this.upgrade_settings[0].max_unavailable == 1
    error_message = "An upgrade must not need a spare GPU."
  }

  assert {
    condition     = google_container_node_pool.this.timeouts.create == "60m" && google_container_node_pool.this.timeouts.update == "60m" && google_container_node_pool.this.timeouts.delete == "60m"
    error_message = "GPU nodes take up to an hour."
  }

  assert {
    condition     = google_container_node_pool.this.deletion_policy == "PREVENT" && google_container_node_pool.this.name_prefix == "h100-"
    error_message = "The pool is protected, and its replacement can have another name."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].reservation_affinity[0].consume_reservation_type == "NO_RESERVATION" && google_container_node_pool.this.node_config[0].spot == false && length(google_container_node_pool.this.queued_provisioning) == 0
    error_message = "On demand is neither spot nor queued and eats no reservation."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].kubelet_config[0].cpu_cfs_quota == true && google_container_node_pool.this.node_config[0].kubelet_config[0].insecure_kubelet_readonly_port_enabled == "FALSE"
    error_message = "Kubelet settings whose defaults moved between provider versions are explicit."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].shielded_instance_config[0].enable_secure_boot && google_container_node_pool.this.node_config[0].workload_metadata_config[0].mode == "GKE_METADATA" && google_container_node_pool.this.network_config[0].enable_private_nodes
    error_message = "Nodes are shielded and private, and hide their credentials from pods."
  }

  assert {
    condition     = google_container_node_pool.this.management[0].auto_repair && google_container_node_pool.this.management[0].auto_upgrade
    error_message = "Nodes are repaired and upgraded."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].gcfs_config[0].enabled && length(google_container_node_pool.this.node_config[0].secondary_boot_disks) == 0 && length(google_container_node_pool.this.placement_policy) == 0
    error_message = "Images are streamed; no secondary disks, no placement unless asked for."
  }

  assert {
    condition     = google_container_node_pool.this.project == "example-project" && google_container_node_pool.this.cluster == "inference" && google_container_node_pool.this.location == "us-central1" && google_container_node_pool.this.node_locations == toset(["us-central1-a", "us-central1-c"]) && google_container_node_pool.this.node_config[0].service_account == "nodes@example-project.iam.gserviceaccount.com"
    error_message = "The pool is where it was asked for, with the account that it was given."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].disk_size_gb == 200 && google_container_node_pool.this.node_config[0].disk_type == "pd-ssd" && google_container_node_pool.this.node_config[0].boot_disk_kms_key == null
    error_message = "The boot disk's defaults."
  }

  assert {
    condition     = output.accelerator == "h100-80gb" && output.gpus_per_node == 8 && output.engines_per_node == 8 && output.max_gpus == 16 && output.ephemeral_storage_gib == 6000 && output.driver_mode == "gke-managed" && output.notice_seconds == null
    error_message = "Outputs say what the pool is: 16 × 375 GiB, two nodes of eight."
  }

  assert {
    condition     = output.node_labels["cloud.google.com/gke-accelerator"] == "nvidia-h100-80gb" && output.node_labels["cloud.google.com/gke-accelerator-count"] == "8" && output.node_labels["node.kubernetes.io/instance-type"] == "a3-highgpu-8g" && output.node_labels["cloud.google.com/machine-family"] == "a3"
    error_message = "Labels that GKE sets are among the output."
  }

  assert {
    condition     = one(output.taints) == { key = "nvidia.com/gpu", value = "present", effect = "NoSchedule" }
    error_message = "The taint in Kubernetes' words."
  }
}

run "every_choice_reaches_the_pool" {
  variables {
    name                = "l4"
    zones               = ["us-central1-a"]
    machine_type        = "g2-standard-48"
    min_nodes           = 1
    max_nodes           = 5
    gpus_per_engine     = 2
    local_ssd_count     = 0
    driver_mode         = "operator"
    boot_disk_gb        = 300
    boot_disk_type      = "pd-balanced"
    boot_disk_kms_key   = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    cache_disk_images   = ["projects/p/global/images/vllm", "projects/p/global/images/models"]
    compact_placement   = true
    deletion_protection = false
    labels              = { team = "inference" }
    resource_labels     = { cost-center = "llm" }
  }

  assert {
    condition     = google_container_node_pool.this.autoscaling[0].total_min_node_count == 1 && google_container_node_pool.this.autoscaling[0].total_max_node_count == 5
    error_message = "Bounds."
  }

  assert {
    condition     = length(google_container_node_pool.this.node_config[0].ephemeral_storage_local_ssd_config) == 0 && output.ephemeral_storage_gib == 0
    error_message = "A G2 may go without local SSDs."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].guest_accelerator[0].gpu_driver_installation_config[0].gpu_driver_version == "INSTALLATION_DISABLED" && google_container_node_pool.this.node_config[0].labels["gke-no-default-nvidia-gpu-device-plugin"] == "true"
    error_message = "With the operator, GKE installs neither driver nor device plugin."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].disk_size_gb == 300 && google_container_node_pool.this.node_config[0].disk_type == "pd-balanced" && google_container_node_pool.this.node_config[0].boot_disk_kms_key == "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    error_message = "The boot disk."
  }

  assert {
    condition     = [for disk in google_container_node_pool.this.node_config[0].secondary_boot_disks : disk.disk_image] == ["projects/p/global/images/vllm", "projects/p/global/images/models"] && alltrue([for disk in google_container_node_pool.this.node_config[0].secondary_boot_disks : disk.mode == "CONTAINER_IMAGE_CACHE"])
    error_message = "Secondary boot disks."
  }

  assert {
    condition     = google_container_node_pool.this.placement_policy[0].type == "COMPACT" && google_container_node_pool.this.deletion_policy == "DELETE"
    error_message = "Placement and protection."
  }

  assert {
    condition     = google_container_node_pool.this.node_config[0].labels["team"] == "inference" && google_container_node_pool.this.node_config[0].labels["vllm-speculative/accelerator"] == "l4" && google_container_node_pool.this.node_config[0].resource_labels["cost-center"] == "llm"
    error_message = "Labels."
  }

  assert {
    condition     = output.engines_per_node == 2 && output.max_gpus == 20 && output.driver_mode == "operator" && length(output.name) > 0
    error_message = "Two engines of two GPUs on a node of four."
  }
}

run "gke_can_install_its_default_driver" {
  command = plan
  variables {
    driver_version  = "DEFAULT"
    image_streaming = false
  }
  assert {
    condition     = google_container_node_pool.this.node_config[0].guest_accelerator[0].gpu_driver_installation_config[0].gpu_driver_version == "DEFAULT" && google_container_node_pool.this.node_config[0].gcfs_config[0].enabled == false
    error_message = "Driver version and image streaming are choices."
  }
}

run "a3_highgpu_2g_is_bought_as_spot" {
  command = plan
  variables {
    machine_type = "a3-highgpu-2g"
    provisioning = "spot"
  }
  assert {
    condition     = google_container_node_pool.this.node_config[0].spot && google_container_node_pool.this.node_config[0].ephemeral_storage_local_ssd_config[0].local_ssd_count == 4 && output.node_labels["cloud.google.com/gke-spot"] == "true"
    error_message = "Two H100s as spot, with four local SSDs."
  }
  assert {
    condition     = output.notice_seconds == 15
    error_message = "Of GKE's 30 seconds pods have 15."
  }
}

run "a_spot_node_can_be_given_two_minutes" {
  command = plan
  variables {
    machine_type          = "a3-highgpu-2g"
    provisioning          = "spot"
    spot_shutdown_seconds = 120
    cluster_version       = "1.35.0-gke.1171000"
  }
  assert {
    condition     = google_container_node_pool.this.node_config[0].kubelet_config[0].shutdown_grace_period_seconds == 120 && google_container_node_pool.this.node_config[0].kubelet_config[0].shutdown_grace_period_critical_pods_seconds == 15 && output.notice_seconds == 105
    error_message = "Two minutes, of which system pods have the last 15 seconds."
  }
}

run "refuses_a_notice_that_gke_does_not_know" {
  command = plan
  variables {
    machine_type          = "a3-highgpu-2g"
    provisioning          = "spot"
    spot_shutdown_seconds = 60
  }
  expect_failures = [var.spot_shutdown_seconds]
}

run "refuses_a_spot_notice_on_demand" {
  command = plan
  variables {
    spot_shutdown_seconds = 120
  }
  expect_failures = [var.spot_shutdown_seconds]
}

run "refuses_a_longer_notice_on_an_older_gke" {
  command = plan
  variables {
    machine_type          = "a3-highgpu-2g"
    provisioning          = "spot"
    spot_shutdown_seconds = 120
    cluster_version       = "1.34.9-gke.1000000"
  }
  expect_failures = [google_container_node_pool.this]
}

run "a3_highgpu_2g_is_bought_as_flex_start" {
  command = plan
  variables {
    cluster_version       = "1.32.2-gke.1652000"
    machine_type          = "a3-highgpu-2g"
    provisioning          = "flex_start"
    max_run_duration_days = 3
  }
  assert {
    condition     = google_container_node_pool.this.node_config[0].flex_start && google_container_node_pool.this.node_config[0].max_run_duration == "259200s" && !google_container_node_pool.this.node_config[0].spot
    error_message = "Flex-start for three days."
  }
  assert {
    condition     = !google_container_node_pool.this.management[0].auto_repair && google_container_node_pool.this.node_config[0].reservation_affinity[0].consume_reservation_type == "NO_RESERVATION" && output.node_labels["cloud.google.com/gke-flex-start"] == "true"
    error_message = "Flex-start nodes are not repaired and use no reservation."
  }
  assert {
    condition     = length(google_container_node_pool.this.queued_provisioning) == 0
    error_message = "Flex-start alone is not queued."
  }
}

run "queued_waits_for_all_nodes_of_a_request" {
  command = plan
  variables {
    provisioning = "queued"
  }
  assert {
    condition     = google_container_node_pool.this.queued_provisioning[0].enabled && google_container_node_pool.this.node_config[0].flex_start && google_container_node_pool.this.node_config[0].max_run_duration == "604800s"
    error_message = "Queued provisioning for seven days."
  }
}

run "a_reservation_is_used_by_name" {
  command = plan
  variables {
    provisioning = "reservation"
    reservation  = "h100-block"
  }
  assert {
    condition     = google_container_node_pool.this.node_config[0].reservation_affinity[0].consume_reservation_type == "SPECIFIC_RESERVATION" && google_container_node_pool.this.node_config[0].reservation_affinity[0].key == "compute.googleapis.com/reservation-name" && google_container_node_pool.this.node_config[0].reservation_affinity[0].values == toset(["h100-block"])
    error_message = "The reservation by its name."
  }
}

run "a3_ultra_takes_hyperdisks_alone" {
  command = plan
  variables {
    zones        = ["us-central1-b"]
    machine_type = "a3-ultragpu-8g"
    provisioning = "spot"
  }
  assert {
    condition     = google_container_node_pool.this.node_config[0].disk_type == "hyperdisk-balanced" && output.accelerator == "h200-141gb" && output.ephemeral_storage_gib == 12000
    error_message = "An A3 Ultra boots from a Hyperdisk and has 32 × 375 GiB of local SSD."
  }
}

run "a_zone_that_google_added_can_be_used" {
  command = plan
  variables {
    zones       = ["us-central1-f"]
    check_zones = false
  }
  assert {
    condition     = google_container_node_pool.this.node_locations == toset(["us-central1-f"])
    error_message = "check_zones = false lets a new zone pass."
  }
}

run "refuses_an_a10g_and_names_the_l4" {
  command = plan
  variables {
    machine_type = "g5.48xlarge"
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_an_unknown_machine" {
  command = plan
  variables {
    machine_type = "n1-standard-8"
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_a3_highgpu_2g_on_demand" {
  command = plan
  variables {
    machine_type = "a3-highgpu-2g"
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_flex_start_on_an_old_cluster" {
  command = plan
  variables {
    provisioning    = "flex_start"
    cluster_version = "1.31.9-gke.1000000"
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_an_ssd_count_that_the_shape_lacks" {
  command = plan
  variables {
    local_ssd_count = 4
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_an_engine_wider_than_the_node" {
  command = plan
  variables {
    machine_type    = "g2-standard-48"
    gpus_per_engine = 8
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_a_zone_outside_the_region" {
  command = plan
  variables {
    zones = ["us-east4-a"]
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_an_h100_in_a_zone_without_it" {
  command = plan
  variables {
    zones = ["us-central1-f"]
  }
  expect_failures = [google_container_node_pool.this]
}

run "refuses_spot_with_a_reservation" {
  command = plan
  variables {
    provisioning = "spot"
    reservation  = "h100-block"
  }
  expect_failures = [var.reservation]
}

run "refuses_reservation_without_its_name" {
  command = plan
  variables {
    provisioning = "reservation"
  }
  expect_failures = [var.reservation]
}

run "refuses_queued_with_nodes_that_stay" {
  command = plan
  variables {
    provisioning = "queued"
    min_nodes    = 1
  }
  expect_failures = [var.min_nodes]
}

run "refuses_half_a_node" {
  command = plan
  variables {
    min_nodes = 0.5
  }
  expect_failures = [var.min_nodes]
}

run "refuses_a_maximum_below_the_minimum" {
  command = plan
  variables {
    min_nodes = 3
    max_nodes = 2
  }
  expect_failures = [var.max_nodes]
}

run "refuses_flex_start_for_eight_days" {
  command = plan
  variables {
    max_run_duration_days = 8
  }
  expect_failures = [var.max_run_duration_days]
}

run "refuses_an_unknown_way_to_buy" {
  command = plan
  variables {
    provisioning = "preemptible"
  }
  # An unknown word also contradicts the shape.
  expect_failures = [var.provisioning]
}

run "refuses_a_long_name" {
  command = plan
  variables {
    name = "h100-80gb-us-c"
  }
  expect_failures = [var.name]
}

run "refuses_a_zone_twice" {
  command = plan
  variables {
    zones = ["us-central1-a", "us-central1-a"]
  }
  expect_failures = [var.zones]
}

run "refuses_an_engine_of_three_gpus" {
  command = plan
  variables {
    gpus_per_engine = 3
  }
  expect_failures = [var.gpus_per_engine]
}

run "refuses_a_second_driver_owner" {
  command = plan
  variables {
    driver_mode = "both"
  }
  expect_failures = [var.driver_mode]
}

run "refuses_a_disabled_driver_in_gke_managed_mode" {
  command = plan
  variables {
    driver_version = "INSTALLATION_DISABLED"
  }
  expect_failures = [var.driver_version]
}

run "refuses_the_default_service_account" {
  command = plan
  variables {
    service_account = "default"
  }
  expect_failures = [var.service_account]
}

run "refuses_a_boot_disk_too_small_for_the_image" {
  command = plan
  variables {
    boot_disk_gb = 50
  }
  expect_failures = [var.boot_disk_gb]
}

run "refuses_a_slow_boot_disk" {
  command = plan
  variables {
    boot_disk_type = "pd-standard"
  }
  expect_failures = [var.boot_disk_type]
}

run "refuses_cache_disks_without_image_streaming" {
  command = plan
  variables {
    image_streaming   = false
    cache_disk_images = ["projects/p/global/images/vllm"]
  }
  expect_failures = [var.cache_disk_images]
}

run "refuses_compact_placement_over_two_zones" {
  command = plan
  variables {
    compact_placement = true
  }
  expect_failures = [var.compact_placement]
}

run "refuses_labels_that_belong_to_gke" {
  command = plan
  variables {
    labels = { "cloud.google.com/gke-accelerator" = "nvidia-l4" }
  }
  expect_failures = [var.labels]
}
