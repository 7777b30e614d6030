output "platform" {
  description = "What the platform root needs to know of the cluster; it reads this from the state."
  value = {
    cloud    = "gke"
    name     = module.cluster.name
    location = module.cluster.region
    project  = var.project_id
    # The DNS name has a public certificate; the address has the cluster's own.
    host               = "https://${var.dns_endpoint ? module.cluster.dns_endpoint : module.cluster.endpoint}"
    ca_certificate     = var.dns_endpoint ? null : module.cluster.ca_certificate
    gpu_stack          = var.gpu_stack
    managed_prometheus = var.managed_prometheus
    gpu_driver_modes   = distinct([for pool in module.gpu_pool : pool.driver_mode])
  }
}

output "gpu_pools" {
  description = "GPU pools as pods see them: labels to select, taints to tolerate, GPUs and storage of a node, notice before a spot node goes."
  value = {
    for name, pool in module.gpu_pool : name => {
      name                  = pool.name
      accelerator           = pool.accelerator
      gpus_per_node         = pool.gpus_per_node
      engines_per_node      = pool.engines_per_node
      max_gpus              = pool.max_gpus
      ephemeral_storage_gib = pool.ephemeral_storage_gib
      notice_seconds        = pool.notice_seconds
      node_labels           = pool.node_labels
      taints                = pool.taints
    }
  }
}

output "connect" {
  description = "Command that adds the cluster to your kubeconfig."
  value       = "gcloud container clusters get-credentials ${module.cluster.name} --region ${var.region} --project ${var.project_id}${var.dns_endpoint ? " --dns-endpoint" : ""}"
}

output "network" {
  description = "Network, subnetwork, and the CPU pool's name."
  value = {
    network              = module.cluster.network
    subnetwork           = module.cluster.subnetwork
    cpu_pool             = module.cluster.cpu_pool
    node_service_account = module.cluster.node_service_account
    workload_pool        = module.cluster.workload_pool
  }
}
