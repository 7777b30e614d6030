output "name" {
  description = "Full name of the pool."
  value       = google_container_node_pool.this.name
}

output "accelerator" {
  description = "The GPU: a key of accelerators in accelerators.yaml, and the chart's accelerator.type."
  value       = local.accelerator
}

output "gpus_per_node" {
  description = "GPUs of a node."
  value       = local.gpus
}

output "engines_per_node" {
  description = "Engines of gpus_per_engine GPUs that fit a node."
  value       = floor(local.gpus / var.gpus_per_engine)
}

output "max_gpus" {
  description = "GPUs of the pool at its largest."
  value       = local.gpus * var.max_nodes
}

output "ephemeral_storage_gib" {
  description = "Size of the local SSDs behind the node's ephemeral storage, GiB, before what GKE reserves. 0: the boot disk is all there is."
  value       = local.local_ssds * local.machine.localSSD.sizeGiB
}

output "notice_seconds" {
  description = "Seconds that pods have to stop in before a spot node is gone. Null: nodes are not taken back."
  value       = var.provisioning == "spot" ? coalesce(var.spot_shutdown_seconds, 30) - local.system_shutdown_seconds : null
}

output "node_labels" {
  description = "Labels that a pod can select the nodes by, the ones that GKE sets among them."
  value = merge(
    local.labels,
    {
      "cloud.google.com/gke-accelerator"       = local.machine.acceleratorLabel
      "cloud.google.com/gke-accelerator-count" = tostring(local.gpus)
      "cloud.google.com/machine-family"        = split("-", var.machine_type)[0]
      "node.kubernetes.io/instance-type"       = var.machine_type
    },
    var.provisioning == "spot" ? { "cloud.google.com/gke-spot" = "true" } : {},
    local.flexible ? { "cloud.google.com/gke-flex-start" = "true" } : {},
  )
}

output "taints" {
  description = "Taints that a pod must tolerate, in Kubernetes' words."
  value       = [{ key = local.taint.key, value = local.taint.value, effect = "NoSchedule" }]
}

output "driver_mode" {
  description = "Who owns the driver on these nodes; the gpu-operator module must be told the same."
  value       = var.driver_mode
}
