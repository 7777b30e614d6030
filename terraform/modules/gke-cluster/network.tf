locals {
  make_network = var.existing_network == null

  network        = local.make_network ? google_compute_network.this[0].id : var.existing_network.network
  subnetwork     = local.make_network ? google_compute_subnetwork.this[0].id : var.existing_network.subnetwork
  pods_range     = local.make_network ? "pods" : var.existing_network.pods_range
  services_range = local.make_network ? "services" : var.existing_network.services_range
}

resource "google_compute_network" "this" {
  count = local.make_network ? 1 : 0

  project                 = var.project_id
  name                    = var.name
  auto_create_subnetworks = false
}

resource "google_compute_subnetwork" "this" {
  count = local.make_network ? 1 : 0

  project                  = var.project_id
  name                     = "${var.name}-nodes"
  region                   = var.region
  network                  = google_compute_network.this[0].id
  ip_cidr_range            = var.cidrs.nodes
  private_ip_google_access = true

  secondary_ip_range {
    range_name    = "pods"
    ip_cidr_range = var.cidrs.pods
  }

  secondary_ip_range {
    range_name    = "services"
    ip_cidr_range = var.cidrs.services
  }

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

# Private nodes pull images and models through it.
resource "google_compute_router" "this" {
  count = local.make_network ? 1 : 0

  project = var.project_id
  name    = var.name
  region  = var.region
  network = google_compute_network.this[0].id
}

resource "google_compute_router_nat" "this" {
  count = local.make_network ? 1 : 0

  project                            = var.project_id
  name                               = var.name
  region                             = var.region
  router                             = google_compute_router.this[0].name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
