output "name" {
  description = "Full name of the node group."
  value       = aws_eks_node_group.this.node_group_name
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
  description = "Size of the instance store behind the node's ephemeral storage, GiB, before what the system reserves."
  value       = local.storage_gib
}

output "notice_seconds" {
  description = "Seconds that pods have to stop in before a spot node is gone: EC2's two minutes' notice. Null: nodes are not taken back."
  # source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
  value = var.provisioning == "spot" ? 120 : null
}

output "node_labels" {
  description = "Labels that a pod can select the nodes by, the ones that EKS sets among them."
  value = merge(local.labels, {
    "node.kubernetes.io/instance-type" = var.machine_type
    "eks.amazonaws.com/capacityType"   = aws_eks_node_group.this.capacity_type
  })
}

output "taints" {
  description = "Taints that a pod must tolerate, in Kubernetes' words."
  value       = [{ key = local.taint.key, value = local.taint.value, effect = "NoSchedule" }]
}

output "driver_mode" {
  description = "Who owns the device plugin on these nodes: the operator. The driver is in the machine image."
  value       = "operator"
}
