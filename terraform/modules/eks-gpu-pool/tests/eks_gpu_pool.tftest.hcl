mock_provider "aws" {
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0", latest_version = 3 }
  }
}

variables {
  cluster       = "inference"
  name          = "a10g"
  subnets       = { "us-east-1a" = "subnet-1", "us-east-1b" = "subnet-2" }
  node_role_arn = "arn:aws:iam::123456789012:role/inference-node"
  machine_type  = "g5.48xlarge"
}

run "an_a10g_pool_is_safe_by_default" {
  assert {
    condition     = aws_eks_node_group.this.ami_type == "AL2023_x86_64_NVIDIA" && aws_eks_node_group.this.instance_types == tolist(["g5.48xlarge"]) && aws_eks_node_group.this.capacity_type == "ON_DEMAND" && aws_eks_node_group.this.cluster_name == "inference" && aws_eks_node_group.this.node_role_arn == "arn:aws:iam::123456789012:role/inference-node" && aws_eks_node_group.this.node_group_name_prefix == "a10g-"
    error_message = "On-demand g5.48xlarge with NVIDIA's image."
  }

  assert {
    condition     = aws_eks_node_group.this.scaling_config[0].min_size == 0 && aws_eks_node_group.this.scaling_config[0].desired_size == 0 && aws_eks_node_group.this.scaling_config[0].max_size == 2 && aws_eks_node_group.this.update_config[0].max_unavailable == 1 && aws_eks_node_group.this.timeouts.create == "60m"
    error_message = "From zero; upgrades one at a time."
  }

  assert {
    condition     = one(aws_eks_node_group.this.taint).key == "nvidia.com/gpu" && one(aws_eks_node_group.this.taint).value == "present" && one(aws_eks_node_group.this.taint).effect == "NO_SCHEDULE"
    error_message = "The GPU taint."
  }

  assert {
    condition     = aws_eks_node_group.this.labels["vllm-speculative/accelerator"] == "a10g" && aws_eks_node_group.this.labels["nvidia.com/gpu.product"] == "NVIDIA-A10G" && aws_eks_node_group.this.labels["k8s.amazonaws.com/accelerator"] == "a10g"
    error_message = "Labels that the autoscaler and pods go by."
  }

  assert {
    # 2 × 3800 × 10^9 bytes are 7078.05 GiB.
    condition     = aws_eks_node_group.this.tags["k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage"] == "7078Gi" && output.ephemeral_storage_gib == 7078
    error_message = "The instance store in GiB."
  }

  assert {
    condition     = yamldecode(split("--//", split("application/node.eks.aws", base64decode(aws_launch_template.this.user_data))[1])[0]).spec.instance.localStorage.strategy == "RAID0"
    error_message = "The instance store is one array."
  }

  assert {
    condition     = aws_launch_template.this.metadata_options[0].http_tokens == "required" && aws_launch_template.this.metadata_options[0].http_put_response_hop_limit == 1 && aws_launch_template.this.block_device_mappings[0].ebs[0].encrypted == "true" && aws_launch_template.this.block_device_mappings[0].ebs[0].volume_size == 100
    error_message = "Encrypted disks, and credentials that pods cannot read."
  }

  assert {
    condition     = aws_launch_template.this.capacity_reservation_specification[0].capacity_reservation_preference == "none" && length(aws_launch_template.this.network_interfaces) == 0 && length(aws_placement_group.this) == 0 && length(aws_launch_template.this.instance_market_options) == 0
    error_message = "No reservation, no EFA."
  }

  assert {
    condition     = output.accelerator == "a10g" && output.gpus_per_node == 8 && output.engines_per_node == 8 && output.max_gpus == 16 && output.driver_mode == "operator" && output.notice_seconds == null && length(output.name) > 0 && output.node_labels["node.kubernetes.io/instance-type"] == "g5.48xlarge" && one(output.taints) == { key = "nvidia.com/gpu", value = "present", effect = "NoSchedule" }
    error_message = "Outputs say what the pool is."
  }
}

run "every_choice_reaches_the_pool" {
  variables {
    name               = "h100"
    subnets            = { "us-east-1a" = "subnet-1" }
    machine_type       = "p5.48xlarge"
    min_nodes          = 1
    max_nodes          = 4
    gpus_per_engine    = 4
    efa                = true
    security_group_ids = ["sg-1", "sg-2"]
    boot_disk_gb       = 200
    boot_disk_kms_key  = "arn:aws:kms:us-east-1:123456789012:key/1234"
    labels             = { team = "inference" }
    tags               = { cost-center = "llm" }
  }

  assert {
    condition     = length(aws_launch_template.this.network_interfaces) == 32 && aws_launch_template.this.network_interfaces[0].device_index == 0 && alltrue([for i, interface in aws_launch_template.this.network_interfaces : interface.network_card_index == i && interface.interface_type == "efa" && interface.security_groups == toset(["sg-1", "sg-2"]) && (i == 0 || interface.device_index == 1)])
    error_message = "An EFA on each of 32 network cards."
  }

  assert {
    condition     = aws_placement_group.this[0].strategy == "cluster" && aws_launch_template.this.placement[0].group_name == "inference-h100"
    error_message = "Nodes next to each other."
  }

  assert {
    condition     = aws_eks_node_group.this.scaling_config[0].min_size == 1 && aws_eks_node_group.this.scaling_config[0].max_size == 4 && output.engines_per_node == 2 && output.max_gpus == 32 && aws_eks_node_group.this.labels["team"] == "inference" && aws_eks_node_group.this.tags["cost-center"] == "llm"
    error_message = "Bounds, labels, tags."
  }

  assert {
    condition     = aws_launch_template.this.block_device_mappings[0].ebs[0].volume_size == 200 && aws_launch_template.this.block_device_mappings[0].ebs[0].kms_key_id == "arn:aws:kms:us-east-1:123456789012:key/1234"
    error_message = "The boot disk."
  }
}

run "spot_with_security_groups_of_yours" {
  command = plan
  variables {
    provisioning       = "spot"
    security_group_ids = ["sg-1"]
  }
  assert {
    condition     = aws_eks_node_group.this.capacity_type == "SPOT" && length(aws_launch_template.this.capacity_reservation_specification) == 0 && aws_launch_template.this.vpc_security_group_ids == toset(["sg-1"]) && output.node_labels["eks.amazonaws.com/capacityType"] == "SPOT" && output.notice_seconds == 120
    error_message = "Spot."
  }
}

run "a_reservation_is_used_by_id" {
  command = plan
  variables {
    subnets                 = { "us-east-1a" = "subnet-1" }
    provisioning            = "reservation"
    capacity_reservation_id = "cr-0123456789abcdef0"
  }
  assert {
    condition     = aws_launch_template.this.capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef0" && aws_eks_node_group.this.capacity_type == "ON_DEMAND"
    error_message = "The reservation by its id."
  }
}

run "a_capacity_block_binds_the_shape" {
  command = plan
  variables {
    subnets                 = { "us-east-1a" = "subnet-1" }
    machine_type            = "p5.48xlarge"
    provisioning            = "capacity_block"
    capacity_reservation_id = "cr-0123456789abcdef0"
  }
  assert {
    condition     = aws_launch_template.this.instance_market_options[0].market_type == "capacity-block" && aws_launch_template.this.instance_type == "p5.48xlarge" && aws_eks_node_group.this.capacity_type == "CAPACITY_BLOCK"
    error_message = "A capacity block."
  }
}

run "refuses_an_unknown_machine" {
  command = plan
  variables {
    machine_type = "a3-highgpu-8g"
  }
  expect_failures = [aws_eks_node_group.this]
}

run "refuses_a_capacity_block_of_a10gs" {
  command = plan
  variables {
    subnets                 = { "us-east-1a" = "subnet-1" }
    provisioning            = "capacity_block"
    capacity_reservation_id = "cr-0123456789abcdef0"
  }
  expect_failures = [aws_eks_node_group.this]
}

run "refuses_an_engine_wider_than_the_node" {
  command = plan
  variables {
    machine_type    = "g5.12xlarge"
    gpus_per_engine = 8
  }
  expect_failures = [aws_eks_node_group.this]
}

run "refuses_efa_on_a_g5" {
  command = plan
  variables {
    subnets            = { "us-east-1a" = "subnet-1" }
    efa                = true
    security_group_ids = ["sg-1"]
  }
  expect_failures = [aws_eks_node_group.this]
}

run "refuses_efa_without_security_groups" {
  command = plan
  variables {
    subnets      = { "us-east-1a" = "subnet-1" }
    machine_type = "p5.48xlarge"
    efa          = true
  }
  expect_failures = [var.efa]
}

run "refuses_efa_over_two_zones" {
  command = plan
  variables {
    machine_type       = "p5.48xlarge"
    efa                = true
    security_group_ids = ["sg-1"]
  }
  expect_failures = [var.efa]
}

run "refuses_spot_with_a_reservation" {
  command = plan
  variables {
    subnets                 = { "us-east-1a" = "subnet-1" }
    provisioning            = "spot"
    capacity_reservation_id = "cr-0123456789abcdef0"
  }
  expect_failures = [var.capacity_reservation_id]
}

run "refuses_a_reservation_over_two_zones" {
  command = plan
  variables {
    provisioning            = "reservation"
    capacity_reservation_id = "cr-0123456789abcdef0"
  }
  expect_failures = [var.capacity_reservation_id]
}

run "refuses_an_unknown_way_to_buy" {
  command = plan
  variables {
    provisioning = "flex_start"
  }
  expect_failures = [var.provisioning]
}

run "refuses_a_long_name" {
  command = plan
  variables {
    name = "eight-a10g-gpus-in-north-virginia-zones"
  }
  expect_failures = [var.name]
}

run "refuses_no_subnets" {
  command = plan
  variables {
    subnets = {}
  }
  expect_failures = [var.subnets]
}

run "refuses_a_role_that_is_no_arn" {
  command = plan
  variables {
    node_role_arn = "inference-node"
  }
  expect_failures = [var.node_role_arn]
}

run "refuses_half_a_node" {
  command = plan
  variables {
    min_nodes = 0.5
  }
  expect_failures = [var.min_nodes]
}

run "refuses_a_maximum_below_the_minimum" {
  command = plan
  variables {
    min_nodes = 3
  }
  expect_failures = [var.max_nodes]
}

run "refuses_an_engine_of_three_gpus" {
  command = plan
  variables {
    gpus_per_engine = 3
  }
  expect_failures = [var.gpus_per_engine]
}

run "refuses_a_boot_disk_too_small_for_the_image" {
  command = plan
  variables {
    boot_disk_gb = 20
  }
  expect_failures = [var.boot_disk_gb]
}

run "refuses_labels_that_belong_to_others" {
  command = plan
  variables {
    labels = { "nvidia.com/gpu.product" = "NVIDIA-L4" }
  }
  expect_failures = [var.labels]
}
