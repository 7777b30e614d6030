module "cluster" {
  source = "../modules/gke-cluster"

  project_id              = var.project_id
  name                    = var.name
  region                  = var.region
  zones                   = var.zones
  release_channel         = var.release_channel
  min_version             = var.min_version
  existing_network        = var.existing_network
  cidrs                   = var.cidrs
  authorized_networks     = var.authorized_networks
  public_endpoint         = var.public_endpoint
  dns_endpoint            = var.dns_endpoint
  managed_prometheus      = var.managed_prometheus
  cpu_pool                = var.cpu_pool
  database_encryption_key = var.database_encryption_key
  deletion_protection     = var.deletion_protection
  workload_buckets        = var.workload_buckets
  workload_secrets        = var.workload_secrets
  resource_labels         = var.resource_labels
}

module "gpu_pool" {
  source   = "../modules/gke-gpu-pool"
  for_each = var.gpu_pools

  project_id            = var.project_id
  cluster               = module.cluster.name
  cluster_version       = module.cluster.kubernetes_version
  region                = var.region
  name                  = each.key
  zones                 = each.value.zones
  check_zones           = each.value.check_zones
  machine_type          = each.value.machine_type
  provisioning          = each.value.provisioning
  reservation           = each.value.reservation
  max_run_duration_days = each.value.max_run_duration_days
  spot_shutdown_seconds = each.value.spot_shutdown_seconds
  min_nodes             = each.value.min_nodes
  max_nodes             = each.value.max_nodes
  gpus_per_engine       = each.value.gpus_per_engine
  local_ssd_count       = each.value.local_ssd_count
  driver_mode           = var.gpu_stack
  driver_version        = each.value.driver_version
  service_account       = module.cluster.node_service_account
  boot_disk_kms_key     = var.disk_kms_key
  image_streaming       = each.value.image_streaming
  cache_disk_images     = each.value.cache_disk_images
  compact_placement     = each.value.compact_placement
  deletion_protection   = !var.allow_gpu_pool_replacement
  labels                = each.value.labels
  resource_labels       = var.resource_labels
}
