output "name" {
  description = "Name of the cluster. Everything that needs the cluster to exist should take it from here."
  value       = aws_eks_cluster.this.name
}

output "endpoint" {
  description = "Address of the control plane."
  value       = aws_eks_cluster.this.endpoint
}

output "ca_certificate" {
  description = "Certificate authority of the control plane, PEM."
  value       = try(base64decode(aws_eks_cluster.this.certificate_authority[0].data), null)
}

output "kubernetes_version" {
  description = "Version of the control plane."
  value       = aws_eks_cluster.this.version
}

output "node_role_arn" {
  description = "Role of the nodes, for GPU pools too."
  value       = aws_iam_role.node.arn
}

output "cluster_security_group_id" {
  description = "Security group of control plane and nodes."
  value       = try(aws_eks_cluster.this.vpc_config[0].cluster_security_group_id, null)
}

output "vpc_id" {
  description = "VPC of the cluster."
  value       = local.vpc_id
}

output "private_subnets" {
  description = "Private subnets: availability zone to subnet."
  value       = local.private_subnets
}

output "cpu_pool" {
  description = "Name of the CPU node group."
  value       = aws_eks_node_group.cpu.node_group_name
}

output "kms_key_arn" {
  description = "Key that encrypts Secrets and logs."
  value       = aws_kms_key.this.arn
}
