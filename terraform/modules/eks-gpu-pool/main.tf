locals {
  catalogue = yamldecode(file("${path.module}/../../../helm/vllm-speculative/files/accelerators.yaml"))
  machines  = local.catalogue.machines.eks
  known     = contains(keys(local.machines), var.machine_type)

  # An unknown shape fails the first precondition below; until then its attributes need some value.
  machine     = local.known ? local.machines[var.machine_type] : values(local.machines)[0]
  accelerator = local.machine.accelerator
  gpus        = local.machine.count

  # Bytes of the instance store in GiB; disks are sold by 1e9 bytes.
  storage_gib = floor(local.machine.instanceStore.count * local.machine.instanceStore.sizeGB * pow(10, 9) / pow(1024, 3))

  # Network cards with an EFA each. source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
  efa_cards = lookup({
    "p4de.24xlarge"    = 4
    "p5.48xlarge"      = 32
    "p5en.48xlarge"    = 16
    "p6-b200.48xlarge" = 8
  }, var.machine_type, 0)

  block = var.provisioning == "capacity_block"

  taint = { key = "nvidia.com/gpu", value = "present", effect = "NO_SCHEDULE" }

  labels = merge(
    var.labels,
    {
      "vllm-speculative/accelerator" = local.accelerator
      # Feature discovery sets this one too, on a node that runs. Here it lets the autoscaler know nodes that do not run yet.
      "nvidia.com/gpu.product" = local.catalogue.accelerators[local.accelerator].gpuProduct
      # By this one the autoscaler knows that a node's GPUs are still being set up.
      "k8s.amazonaws.com/accelerator" = local.accelerator
    },
  )

  # EKS adds the cluster's part to it. The instance store becomes one array that holds images, logs and emptyDir volumes.
  user_data = <<-EOT
    MIME-Version: 1.0
    Content-Type: multipart/mixed; boundary="//"

    --//
    Content-Type: application/node.eks.aws

    apiVersion: node.eks.aws/v1alpha1
    kind: NodeConfig
    spec:
      instance:
        localStorage:
          strategy: RAID0

    --//--
  EOT
}

resource "aws_placement_group" "this" {
  count = var.efa ? 1 : 0

  name     = "${var.cluster}-${var.name}"
  strategy = "cluster"
  tags     = var.tags
}

resource "aws_launch_template" "this" {
  name_prefix            = "${var.cluster}-${var.name}-"
  update_default_version = true
  user_data              = base64encode(local.user_data)
  # A capacity block binds the shape here; otherwise the node group names it.
  instance_type          = local.block ? var.machine_type : null
  vpc_security_group_ids = var.efa || length(var.security_group_ids) == 0 ? null : var.security_group_ids
  tags                   = var.tags

  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_size           = var.boot_disk_gb
      volume_type           = "gp3"
      encrypted             = true
      kms_key_id            = var.boot_disk_kms_key
      delete_on_termination = true
    }
  }

  # One hop: the node reads its credentials, pods do not.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  dynamic "capacity_reservation_specification" {
    for_each = var.provisioning == "spot" ? [] : [1]
    content {
      # On demand means on demand: an open reservation is not eaten by accident.
      capacity_reservation_preference = var.capacity_reservation_id == null ? "none" : null

      dynamic "capacity_reservation_target" {
        for_each = var.capacity_reservation_id == null ? [] : [1]
        content {
          capacity_reservation_id = var.capacity_reservation_id
        }
      }
    }
  }

  dynamic "instance_market_options" {
    for_each = local.block ? [1] : []
    content {
      market_type = "capacity-block"
    }
  }

  dynamic "network_interfaces" {
    for_each = var.efa ? range(local.efa_cards) : []
    content {
      network_card_index          = network_interfaces.value
      device_index                = network_interfaces.value == 0 ? 0 : 1
      interface_type              = "efa"
      associate_public_ip_address = "false"
      delete_on_termination       = "true"
      security_groups             = var.security_group_ids
    }
  }

  dynamic "placement" {
    for_each = aws_placement_group.this
    content {
      group_name = placement.value.name
    }
  }

  tag_specifications {
    resource_type = "instance"
    tags          = merge(var.tags, { Name = "${var.cluster}-${var.name}" })
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_eks_node_group" "this" {
  cluster_name           = var.cluster
  node_group_name_prefix = "${var.name}-"
  node_role_arn          = var.node_role_arn
  subnet_ids             = values(var.subnets)
  ami_type               = "AL2023_x86_64_NVIDIA"
  instance_types         = local.block ? null : [var.machine_type]
  capacity_type          = { on_demand = "ON_DEMAND", reservation = "ON_DEMAND", spot = "SPOT", capacity_block = "CAPACITY_BLOCK" }[var.provisioning]
  labels                 = local.labels

  # The autoscaler reads what it cannot know of a group without nodes.
  tags = merge(var.tags, {
    "k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage" = "${local.storage_gib}Gi"
  })

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.latest_version
  }

  scaling_config {
    min_size     = var.min_nodes
    max_size     = var.max_nodes
    desired_size = var.min_nodes
  }

  # One node at a time: nobody has spare GPUs.
  update_config {
    max_unavailable = 1
  }

  taint {
    key    = local.taint.key
    value  = local.taint.value
    effect = local.taint.effect
  }

  timeouts {
    create = "60m"
    update = "60m"
    delete = "60m"
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [scaling_config[0].desired_size]

    precondition {
      condition     = local.known
      error_message = "No GPU machine ${var.machine_type} on EKS. Known: ${join(", ", keys(local.machines))}."
    }

    precondition {
      condition     = !local.known || contains(local.machine.provisioning, var.provisioning)
      error_message = "${var.machine_type} cannot be bought as ${var.provisioning}, only as ${join(" or ", local.machine.provisioning)}."
    }

    precondition {
      condition     = !local.known || var.gpus_per_engine <= local.gpus
      error_message = "An engine of ${var.gpus_per_engine} GPUs does not fit a ${var.machine_type}, which has ${local.gpus}."
    }

    precondition {
      condition     = !local.known || !var.efa || local.efa_cards > 0
      error_message = "${var.machine_type} has no EFA that the pool can use."
    }
  }
}
