output "platform" {
  description = "What the platform root needs to know of the cluster; it reads this from the state."
  value = {
    cloud              = "eks"
    name               = module.cluster.name
    location           = var.region
    project            = null
    host               = module.cluster.endpoint
    ca_certificate     = module.cluster.ca_certificate
    gpu_stack          = "operator"
    managed_prometheus = false
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
  value       = "aws eks update-kubeconfig --name ${module.cluster.name} --region ${var.region}"
}

output "cluster" {
  description = "Network, version, key and CPU pool of the cluster."
  value = {
    vpc_id             = module.cluster.vpc_id
    kubernetes_version = module.cluster.kubernetes_version
    cpu_pool           = module.cluster.cpu_pool
    kms_key_arn        = module.cluster.kms_key_arn
  }
}

output "allow_gpu_pool_replacement" {
  description = "Whether plans may delete or replace GPU pools."
  value       = var.allow_gpu_pool_replacement
}
