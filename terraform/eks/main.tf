module "cluster" {
  source = "../modules/eks-cluster"

  name                = var.name
  kubernetes_version  = var.kubernetes_version
  zones               = var.zones
  existing_network    = var.existing_network
  vpc_cidr            = var.vpc_cidr
  service_cidr        = var.service_cidr
  one_nat_gateway     = var.one_nat_gateway
  public_endpoint     = var.public_endpoint
  public_access_cidrs = var.public_access_cidrs
  admins              = var.admins
  addons              = var.addons
  pod_identities      = var.pod_identities
  cluster_autoscaler  = var.cluster_autoscaler
  cpu_pool            = var.cpu_pool
  log_retention_days  = var.log_retention_days
  flow_logs           = var.flow_logs
}

# Engines that span nodes talk over EFA past every port filter: members of this group reach each other, and nobody else does.
resource "aws_security_group" "efa" {
  count = anytrue([for pool in values(var.gpu_pools) : pool.efa]) ? 1 : 0

  name_prefix = "${var.name}-efa-"
  description = "EFA traffic between GPU nodes of ${var.name}"
  vpc_id      = module.cluster.vpc_id

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "efa" {
  count = length(aws_security_group.efa)

  security_group_id            = aws_security_group.efa[0].id
  referenced_security_group_id = aws_security_group.efa[0].id
  ip_protocol                  = "-1"
  description                  = "From its members"
}

resource "aws_vpc_security_group_egress_rule" "efa" {
  count = length(aws_security_group.efa)

  security_group_id            = aws_security_group.efa[0].id
  referenced_security_group_id = aws_security_group.efa[0].id
  ip_protocol                  = "-1"
  description                  = "To its members"
}

module "gpu_pool" {
  source   = "../modules/eks-gpu-pool"
  for_each = var.gpu_pools

  cluster                 = module.cluster.name
  name                    = each.key
  subnets                 = { for zone, subnet in module.cluster.private_subnets : zone => subnet if each.value.zones == null || contains(coalesce(each.value.zones, []), zone) }
  node_role_arn           = module.cluster.node_role_arn
  security_group_ids      = each.value.efa ? [module.cluster.cluster_security_group_id, aws_security_group.efa[0].id] : []
  machine_type            = each.value.machine_type
  provisioning            = each.value.provisioning
  capacity_reservation_id = each.value.capacity_reservation_id
  min_nodes               = each.value.min_nodes
  max_nodes               = each.value.max_nodes
  gpus_per_engine         = each.value.gpus_per_engine
  efa                     = each.value.efa
  boot_disk_gb            = each.value.boot_disk_gb
  boot_disk_kms_key       = var.disk_kms_key
  labels                  = each.value.labels
}
