resource "aws_eks_cluster" "this" {
  name     = var.name
  version  = var.kubernetes_version
  role_arn = aws_iam_role.cluster.arn
  tags     = var.tags

  # The add-ons below, at versions that are known, and not EKS's unmanaged copies of them.
  bootstrap_self_managed_addons = false
  enabled_cluster_log_types     = ["api", "audit", "authenticator", "controllerManager", "scheduler"]

  vpc_config {
    subnet_ids              = values(local.private_subnets)
    endpoint_private_access = true
    endpoint_public_access  = var.public_endpoint
    public_access_cidrs     = var.public_endpoint ? var.public_access_cidrs : null
  }

  kubernetes_network_config {
    service_ipv4_cidr = var.service_cidr
  }

  access_config {
    authentication_mode                         = "API"
    bootstrap_cluster_creator_admin_permissions = false
  }

  encryption_config {
    resources = ["secrets"]
    provider {
      key_arn = aws_kms_key.this.arn
    }
  }

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  depends_on = [
    aws_iam_role_policy_attachment.cluster,
    aws_cloudwatch_log_group.control_plane,
    aws_route.nat,
  ]
}

resource "aws_eks_access_entry" "admin" {
  for_each = var.admins

  cluster_name  = aws_eks_cluster.this.name
  principal_arn = each.value
  tags          = var.tags
}

resource "aws_eks_access_policy_association" "admin" {
  for_each = var.admins

  cluster_name  = aws_eks_cluster.this.name
  principal_arn = aws_eks_access_entry.admin[each.key].principal_arn
  policy_arn    = "arn:${data.aws_partition.this.partition}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"

  access_scope {
    type = "cluster"
  }
}

# Nodes do not get ready without the network add-on, and the other add-ons not without nodes.
locals {
  addons_before_nodes = setintersection(keys(var.addons), ["vpc-cni", "kube-proxy", "eks-pod-identity-agent"])
}

resource "aws_eks_addon" "before_nodes" {
  for_each = { for name, version in var.addons : name => version if contains(local.addons_before_nodes, name) }

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  addon_version               = each.value
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"
  tags                        = var.tags
}

resource "aws_eks_addon" "after_nodes" {
  for_each = { for name, version in var.addons : name => version if !contains(local.addons_before_nodes, name) }

  cluster_name                = aws_eks_cluster.this.name
  addon_name                  = each.key
  addon_version               = each.value
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"
  tags                        = var.tags

  dynamic "pod_identity_association" {
    for_each = each.key == "aws-ebs-csi-driver" ? aws_iam_role.ebs_csi : []
    content {
      role_arn        = pod_identity_association.value.arn
      service_account = "ebs-csi-controller-sa"
    }
  }

  depends_on = [aws_eks_node_group.cpu]
}

resource "aws_launch_template" "cpu" {
  name_prefix            = "${var.name}-cpu-"
  update_default_version = true
  tags                   = var.tags

  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size           = var.cpu_pool.disk_gb
      volume_type           = "gp3"
      encrypted             = true
      delete_on_termination = true
    }
  }

  # One hop: the node reads its credentials, pods do not.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  tag_specifications {
    resource_type = "instance"
    tags          = merge(var.tags, { Name = "${var.name}-cpu" })
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_eks_node_group" "cpu" {
  cluster_name           = aws_eks_cluster.this.name
  node_group_name_prefix = "cpu-"
  node_role_arn          = aws_iam_role.node.arn
  subnet_ids             = values(local.private_subnets)
  ami_type               = "AL2023_x86_64_STANDARD"
  instance_types         = var.cpu_pool.instance_types
  tags                   = var.tags

  launch_template {
    id      = aws_launch_template.cpu.id
    version = aws_launch_template.cpu.latest_version
  }

  scaling_config {
    min_size     = var.cpu_pool.min_nodes
    max_size     = var.cpu_pool.max_nodes
    desired_size = var.cpu_pool.min_nodes
  }

  update_config {
    max_unavailable = 1
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [scaling_config[0].desired_size]
  }

  depends_on = [aws_iam_role_policy_attachment.node, aws_eks_addon.before_nodes]
}
