locals {
  catalogue = yamldecode(file("${path.module}/../../../helm/vllm-speculative/files/accelerators.yaml"))
  machines  = local.catalogue.machines.gke
  known     = contains(keys(local.machines), var.machine_type)

  # An unknown shape fails the first precondition below; until then its attributes need some value.
  machine     = local.known ? local.machines[var.machine_type] : values(local.machines)[0]
  accelerator = local.machine.accelerator
  gpus        = local.machine.count

  zones_known = lookup(yamldecode(file("${path.module}/zones.yaml")), local.accelerator, var.zones)

  local_ssds        = var.local_ssd_count == null ? local.machine.localSSD.count : var.local_ssd_count
  local_ssd_choices = local.machine.localSSD.fixed ? [local.machine.localSSD.count] : range(0, local.machine.localSSD.count + 1)

  boot_disk_type = coalesce(
    var.boot_disk_type,
    can(regex("^(a3-ultragpu|a4|g4)-", var.machine_type)) ? "hyperdisk-balanced" : "pd-ssd",
  )

  # The last seconds of a spot node are for system pods. source: https://cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
  system_shutdown_seconds = 15

  flexible = contains(["flex_start", "queued"], var.provisioning)

  # 1.33.1-gke.1000 as 1033001
  version = var.cluster_version == null ? null : sum([
    for i, part in regex("^(\\d+)\\.(\\d+)\\.(\\d+)", var.cluster_version) : tonumber(part) * pow(1000, 2 - i)
  ])

  # GKE puts the taint on pools beside CPU pools by itself, and not on clusters of GPU pools alone. Declared, it is always
  # there and no plan ever sees a difference.
  taint = { key = "nvidia.com/gpu", value = "present", effect = "NO_SCHEDULE" }

  labels = merge(
    var.labels,
    { "vllm-speculative/accelerator" = local.accelerator },
    var.driver_mode == "operator" ? { "gke-no-default-nvidia-gpu-device-plugin" = "true" } : {},
  )
}

resource "google_container_node_pool" "this" {
  project        = var.project_id
  cluster        = var.cluster
  location       = var.region
  node_locations = var.zones
  name_prefix    = "${var.name}-"

  # Grows from zero: autoscaling owns the number of nodes from then on.
  initial_node_count = 0
  deletion_policy    = var.deletion_protection ? "PREVENT" : "DELETE"

  autoscaling {
    total_min_node_count = var.min_nodes
    total_max_node_count = var.max_nodes
    # Scarce GPUs are wherever they are; BALANCED would wait for the zone that has none.
    location_policy = "ANY"
  }

  management {
    # A flex-start node that breaks is not repaired, it goes back to the queue.
    auto_repair  = !local.flexible
    auto_upgrade = true
  }

  # One node at a time, in place: a surge node would need GPUs that nobody has to spare. Flex-start pools bring an
  # upgrade strategy of their own, which replaces nodes at their end of life.
  dynamic "upgrade_settings" {
    for_each = local.flexible ? [] : [1]
    content {
      strategy        = "SURGE"
      max_surge       = 0
      max_unavailable = 1
    }
  }

  dynamic "queued_provisioning" {
    for_each = var.provisioning == "queued" ? [1] : []
    content {
      enabled = true
    }
  }

  dynamic "placement_policy" {
    for_each = var.compact_placement ? [1] : []
    content {
      type = "COMPACT"
    }
  }

  network_config {
    enable_private_nodes = true
  }

  node_config {
    machine_type      = var.machine_type
    image_type        = "COS_CONTAINERD"
    service_account   = var.service_account
    oauth_scopes      = ["https://www.googleapis.com/auth/cloud-platform"]
    disk_type         = local.boot_disk_type
    disk_size_gb      = var.boot_disk_gb
    boot_disk_kms_key = var.boot_disk_kms_key

    spot             = var.provisioning == "spot"
    flex_start       = local.flexible ? true : null
    max_run_duration = local.flexible ? "${var.max_run_duration_days * 86400}s" : null

    labels          = local.labels
    resource_labels = var.resource_labels
    metadata        = { disable-legacy-endpoints = "true" }

    taint {
      key    = local.taint.key
      value  = local.taint.value
      effect = local.taint.effect
    }

    guest_accelerator {
      type  = local.machine.acceleratorLabel
      count = local.gpus

      # Left out, GKE fills it in, and the next plan wants to replace the pool.
      gpu_driver_installation_config {
        gpu_driver_version = var.driver_mode == "gke-managed" ? var.driver_version : "INSTALLATION_DISABLED"
      }
    }

    dynamic "ephemeral_storage_local_ssd_config" {
      for_each = local.local_ssds > 0 ? [1] : []
      content {
        local_ssd_count = local.local_ssds
      }
    }

    reservation_affinity {
      consume_reservation_type = var.provisioning == "reservation" ? "SPECIFIC_RESERVATION" : "NO_RESERVATION"
      key                      = var.provisioning == "reservation" ? "compute.googleapis.com/reservation-name" : null
      values                   = var.provisioning == "reservation" ? [var.reservation] : null
    }

    gcfs_config {
      enabled = var.image_streaming
    }

    gvnic {
      enabled = true
    }

    dynamic "secondary_boot_disks" {
      for_each = var.cache_disk_images
      content {
        disk_image = secondary_boot_disks.value
        mode       = "CONTAINER_IMAGE_CACHE"
      }
    }

    kubelet_config {
      cpu_cfs_quota                               = true
      insecure_kubelet_readonly_port_enabled      = "FALSE"
      shutdown_grace_period_seconds               = var.spot_shutdown_seconds
      shutdown_grace_period_critical_pods_seconds = var.spot_shutdown_seconds == null ? null : local.system_shutdown_seconds
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  # An H100 node takes its time, and a pool waits for capacity.
  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [initial_node_count]

    precondition {
      condition     = !startswith(var.machine_type, "g5.") && !can(regex("a10g", var.machine_type))
      error_message = "GKE has no A10G: that is a GPU of AWS G5. GKE's 24 GB class is the L4, for example g2-standard-48 with four. It computes FP8, which an A10G does not."
    }

    precondition {
      condition     = local.known || startswith(var.machine_type, "g5.") || can(regex("a10g", var.machine_type))
      error_message = "No GPU machine ${var.machine_type} on GKE. Known: ${join(", ", keys(local.machines))}."
    }

    precondition {
      condition     = !local.known || contains(local.machine.provisioning, var.provisioning)
      error_message = "${var.machine_type} cannot be bought as ${var.provisioning}, only as ${join(" or ", local.machine.provisioning)}.${can(regex("^a3-highgpu-[124]g$", var.machine_type)) ? " On demand, take a3-highgpu-8g and let several engines share the node." : ""}"
    }

    precondition {
      condition     = !local.flexible || local.version == null || coalesce(local.version, 0) >= 1032002
      error_message = "Flex-start needs GKE 1.32.2 or later; the cluster runs ${coalesce(var.cluster_version, "another")}."
    }

    precondition {
      condition     = var.spot_shutdown_seconds == null || local.version == null || coalesce(local.version, 0) >= 1035000
      error_message = "spot_shutdown_seconds needs GKE 1.35 or later; the cluster runs ${coalesce(var.cluster_version, "another")}."
    }

    precondition {
      condition     = !local.known || contains(local.local_ssd_choices, local.local_ssds)
      error_message = "${var.machine_type} has ${local.machine.localSSD.fixed ? "exactly" : "at most"} ${local.machine.localSSD.count} local SSDs of ${local.machine.localSSD.sizeGiB} GiB, not ${local.local_ssds}."
    }

    precondition {
      condition     = !local.known || var.gpus_per_engine <= local.gpus
      error_message = "An engine of ${var.gpus_per_engine} GPUs does not fit a ${var.machine_type}, which has ${local.gpus}."
    }

    precondition {
      condition     = alltrue([for zone in var.zones : startswith(zone, "${var.region}-")])
      error_message = "Every zone must lie in ${var.region}, the cluster's region; not so: ${join(", ", [for zone in var.zones : zone if !startswith(zone, "${var.region}-")])}."
    }

    precondition {
      condition = !local.known || !var.check_zones || alltrue([
        for zone in var.zones : contains(local.zones_known, zone) || !startswith(zone, "${var.region}-")
      ])
      error_message = "Not known to sell ${local.accelerator}: ${join(", ", [for zone in var.zones : zone if !contains(local.zones_known, zone)])}. In ${var.region}: ${join(", ", [for zone in local.zones_known : zone if startswith(zone, "${var.region}-")])}. Set check_zones = false if Google sells it there now."
    }
  }
}
