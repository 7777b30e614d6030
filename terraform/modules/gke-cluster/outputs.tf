output "name" {
  description = "Name of the cluster. Everything that needs the cluster to exist should take it from here."
  value       = google_container_cluster.this.name
}

output "region" {
  description = "Region of the cluster."
  value       = google_container_cluster.this.location
}

output "endpoint" {
  description = "Address of the control plane."
  value       = google_container_cluster.this.endpoint
}

output "dns_endpoint" {
  description = "DNS name of the control plane, for clients outside the network. Null where dns_endpoint is false."
  value       = var.dns_endpoint ? google_container_cluster.this.control_plane_endpoints_config[0].dns_endpoint_config[0].endpoint : null
}

output "ca_certificate" {
  description = "Certificate authority of the control plane's address, PEM."
  value       = try(base64decode(google_container_cluster.this.master_auth[0].cluster_ca_certificate), null)
}

output "kubernetes_version" {
  description = "Version of the control plane."
  value       = google_container_cluster.this.master_version
}

output "workload_pool" {
  description = "Workload Identity pool."
  value       = local.workload_pool
}

output "node_service_account" {
  description = "E-mail of the nodes' service account, for GPU pools too."
  value       = google_service_account.nodes.email
}

output "network" {
  description = "Network of the cluster."
  value       = local.network
}

output "subnetwork" {
  description = "Subnetwork of the nodes."
  value       = local.subnetwork
}

output "cpu_pool" {
  description = "Name of the CPU pool."
  value       = google_container_node_pool.cpu.name
}
