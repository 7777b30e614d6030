# What a node itself does: logs, metrics, and pulling images. Pods get their own identity.
resource "google_service_account" "nodes" {
  project      = var.project_id
  account_id   = "${var.name}-nodes"
  display_name = "Nodes of the GKE cluster ${var.name}"
}

resource "google_project_iam_member" "nodes" {
  for_each = toset([
    "roles/container.defaultNodeServiceAccount",
    "roles/artifactregistry.reader",
  ])

  project = var.project_id
  role    = each.value
  member  = "serviceAccount:${google_service_account.nodes.email}"
}

locals {
  workload_pool = "${var.project_id}.svc.id.goog"

  # Workload Identity names a Kubernetes service account in IAM without a Google one in between.
  principals = {
    for account in distinct(concat(values(var.workload_buckets), values(var.workload_secrets))) :
    account => "serviceAccount:${local.workload_pool}[${account}]"
  }
}

resource "google_storage_bucket_iam_member" "workload" {
  for_each = var.workload_buckets

  bucket = each.key
  role   = "roles/storage.objectViewer"
  member = local.principals[each.value]

  # The identity pool exists once the cluster does.
  depends_on = [google_container_cluster.this]
}

resource "google_secret_manager_secret_iam_member" "workload" {
  for_each = var.workload_secrets

  project   = var.project_id
  secret_id = each.key
  role      = "roles/secretmanager.secretAccessor"
  member    = local.principals[each.value]

  depends_on = [google_container_cluster.this]
}
