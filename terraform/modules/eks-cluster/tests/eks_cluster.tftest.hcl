mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_region" {
    defaults = { name = "us-east-1" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/mock" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:us-east-1:123456789012:key/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-east-1:123456789012:log-group:mock" }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0", latest_version = 3 }
  }
  mock_resource "aws_eks_cluster" {
    defaults = {
      endpoint              = "https://1234.gr7.us-east-1.eks.amazonaws.com"
      certificate_authority = [{ data = "Y2VydGlmaWNhdGU=" }]
    }
  }
}

variables {
  name  = "inference"
  zones = ["us-east-1a", "us-east-1b"]
}

run "a_cluster_is_private_and_hardened_by_default" {
  assert {
    condition     = aws_eks_cluster.this.vpc_config[0].endpoint_private_access && !aws_eks_cluster.this.vpc_config[0].endpoint_public_access && aws_eks_cluster.this.version == "1.33"
    error_message = "A private control plane."
  }

  assert {
    condition     = aws_eks_cluster.this.access_config[0].authentication_mode == "API" && !aws_eks_cluster.this.access_config[0].bootstrap_cluster_creator_admin_permissions && length(aws_eks_access_entry.admin) == 0
    error_message = "Nobody administers the cluster by accident."
  }

  assert {
    condition     = one(aws_eks_cluster.this.encryption_config[0].resources) == "secrets" && aws_eks_cluster.this.encryption_config[0].provider[0].key_arn == aws_kms_key.this.arn && aws_kms_key.this.enable_key_rotation
    error_message = "Secrets are encrypted with a key of our own that rotates."
  }

  assert {
    condition     = aws_eks_cluster.this.enabled_cluster_log_types == toset(["api", "audit", "authenticator", "controllerManager", "scheduler"]) && aws_cloudwatch_log_group.control_plane.retention_in_days == 365 && aws_flow_log.this[0].traffic_type == "ALL"
    error_message = "Logs."
  }

  assert {
    condition     = aws_vpc.this[0].cidr_block == "10.0.0.0/16" && { for zone, subnet in aws_subnet.private : zone => subnet.cidr_block } == { "us-east-1a" = "10.0.0.0/19", "us-east-1b" = "10.0.32.0/19" } && { for zone, subnet in aws_subnet.public : zone => subnet.cidr_block } == { "us-east-1a" = "10.0.224.0/22", "us-east-1b" = "10.0.228.0/22" }
    error_message = "A private and a public subnet a zone, which do not overlap."
  }

  assert {
    condition     = length(aws_nat_gateway.this) == 2 && aws_route.nat["us-east-1b"].nat_gateway_id == aws_nat_gateway.this["us-east-1b"].id && aws_eks_cluster.this.kubernetes_network_config[0].service_ipv4_cidr == "172.20.0.0/16"
    error_message = "A NAT gateway a zone."
  }

  assert {
    condition     = keys(aws_eks_addon.before_nodes) == ["eks-pod-identity-agent", "kube-proxy", "vpc-cni"] && keys(aws_eks_addon.after_nodes) == ["aws-ebs-csi-driver", "coredns", "metrics-server"] && length(aws_eks_addon.after_nodes["aws-ebs-csi-driver"].pod_identity_association) == 1
    error_message = "Add-ons in the order in which they can work."
  }

  assert {
    condition     = aws_eks_node_group.cpu.scaling_config[0].min_size == 2 && aws_eks_node_group.cpu.scaling_config[0].max_size == 6 && aws_eks_node_group.cpu.instance_types == tolist(["m6i.xlarge"]) && aws_launch_template.cpu.metadata_options[0].http_tokens == "required" && aws_launch_template.cpu.metadata_options[0].http_put_response_hop_limit == 1 && aws_launch_template.cpu.block_device_mappings[0].ebs[0].encrypted == "true"
    error_message = "CPU nodes with encrypted disks and credentials that pods cannot read."
  }

  assert {
    condition     = length(aws_eks_pod_identity_association.cluster_autoscaler) == 1 && strcontains(aws_iam_role_policy.cluster_autoscaler[0].policy, "k8s.io/cluster-autoscaler/inference")
    error_message = "The autoscaler scales this cluster's node groups alone."
  }

  assert {
    condition     = output.name == "inference" && output.endpoint == "https://1234.gr7.us-east-1.eks.amazonaws.com" && output.ca_certificate == "certificate" && output.kubernetes_version == "1.33" && output.node_role_arn == "arn:aws:iam::123456789012:role/mock" && output.kms_key_arn == aws_kms_key.this.arn
    error_message = "Outputs that the platform needs."
  }

  assert {
    condition     = output.vpc_id == aws_vpc.this[0].id && keys(output.private_subnets) == ["us-east-1a", "us-east-1b"] && output.cpu_pool == aws_eks_node_group.cpu.node_group_name && (output.cluster_security_group_id == null || output.cluster_security_group_id != "")
    error_message = "Outputs of what was made."
  }
}

run "every_choice_reaches_the_cluster" {
  command = plan
  variables {
    kubernetes_version  = "1.32"
    vpc_cidr            = "10.64.0.0/16"
    service_cidr        = "10.96.0.0/16"
    one_nat_gateway     = true
    public_endpoint     = true
    public_access_cidrs = ["203.0.113.0/24"]
    admins              = { platform = "arn:aws:iam::123456789012:role/platform" }
    addons              = { vpc-cni = "v1.20.0-eksbuild.1" }
    pod_identities = {
      engines = { namespace = "ai-inference", service_account = "speculative", secret_arns = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:hf"], bucket_arns = ["arn:aws:s3:::models"] }
    }
    cluster_autoscaler = false
    cpu_pool           = { instance_types = ["m7i.2xlarge"], min_nodes = 3, max_nodes = 9, disk_gb = 50 }
    log_retention_days = 30
    flow_logs          = false
    tags               = { team = "inference" }
  }

  assert {
    condition     = aws_eks_cluster.this.version == "1.32" && aws_eks_cluster.this.vpc_config[0].endpoint_public_access && aws_eks_cluster.this.vpc_config[0].public_access_cidrs == toset(["203.0.113.0/24"]) && aws_eks_cluster.this.kubernetes_network_config[0].service_ipv4_cidr == "10.96.0.0/16" && aws_vpc.this[0].cidr_block == "10.64.0.0/16"
    error_message = "Version, endpoint, ranges."
  }

  assert {
    condition     = keys(aws_nat_gateway.this) == ["us-east-1a"] && length(aws_route.nat) == 2
    error_message = "One NAT gateway for both zones."
  }

  assert {
    condition     = aws_eks_access_entry.admin["platform"].principal_arn == "arn:aws:iam::123456789012:role/platform" && aws_eks_access_policy_association.admin["platform"].policy_arn == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    error_message = "An administrator."
  }

  assert {
    condition     = aws_eks_addon.before_nodes["vpc-cni"].addon_version == "v1.20.0-eksbuild.1" && length(aws_eks_addon.after_nodes) == 0 && length(aws_iam_role.ebs_csi) == 0
    error_message = "Add-ons and their versions."
  }

  assert {
    condition     = aws_eks_pod_identity_association.workload["engines"].service_account == "speculative" && aws_eks_pod_identity_association.workload["engines"].namespace == "ai-inference" && jsondecode(aws_iam_role_policy.workload["engines"].policy).Statement[0].Resource == ["arn:aws:secretsmanager:us-east-1:123456789012:secret:hf"] && jsondecode(aws_iam_role_policy.workload["engines"].policy).Statement[1].Resource == ["arn:aws:s3:::models", "arn:aws:s3:::models/*"]
    error_message = "Pods read the token and the models, and no more."
  }

  assert {
    condition     = length(aws_iam_role.cluster_autoscaler) == 0 && length(aws_flow_log.this) == 0 && aws_cloudwatch_log_group.control_plane.retention_in_days == 30
    error_message = "What was left out."
  }

  assert {
    condition     = aws_eks_node_group.cpu.scaling_config[0].min_size == 3 && aws_eks_node_group.cpu.scaling_config[0].max_size == 9 && aws_eks_node_group.cpu.instance_types == tolist(["m7i.2xlarge"]) && aws_launch_template.cpu.block_device_mappings[0].ebs[0].volume_size == 50 && aws_eks_cluster.this.tags["team"] == "inference"
    error_message = "CPU pool and tags."
  }
}

run "a_network_of_your_own_is_used" {
  command = plan
  variables {
    zones            = []
    existing_network = { vpc_id = "vpc-1234", private_subnet_ids = { "us-east-1a" = "subnet-1", "us-east-1b" = "subnet-2" } }
  }

  assert {
    condition     = length(aws_vpc.this) == 0 && length(aws_nat_gateway.this) == 0 && length(aws_flow_log.this) == 0 && aws_eks_cluster.this.vpc_config[0].subnet_ids == toset(["subnet-1", "subnet-2"]) && output.vpc_id == "vpc-1234"
    error_message = "No network is made."
  }
}

run "refuses_a_name_too_long_for_its_roles" {
  command = plan
  variables {
    name = "a-cluster-with-a-name-that-is-much-too-long-for-iam"
  }
  expect_failures = [var.name]
}

run "refuses_a_patch_version" {
  command = plan
  variables {
    kubernetes_version = "1.33.2"
  }
  expect_failures = [var.kubernetes_version]
}

run "refuses_one_subnet" {
  command = plan
  variables {
    existing_network = { vpc_id = "vpc-1234", private_subnet_ids = { "us-east-1a" = "subnet-1" } }
  }
  expect_failures = [var.existing_network]
}

run "refuses_one_zone" {
  command = plan
  variables {
    zones = ["us-east-1a"]
  }
  expect_failures = [var.zones]
}

run "refuses_a_small_vpc" {
  command = plan
  variables {
    vpc_cidr = "10.0.0.0/24"
  }
  expect_failures = [var.vpc_cidr]
}

run "refuses_a_service_range_that_is_none" {
  command = plan
  variables {
    service_cidr = "172.20.0.0"
  }
  expect_failures = [var.service_cidr]
}

run "refuses_services_inside_the_vpc" {
  command = plan
  variables {
    service_cidr = "10.0.128.0/20"
  }
  expect_failures = [var.service_cidr]
}

run "refuses_a_public_endpoint_for_nobody_in_particular" {
  command = plan
  variables {
    public_endpoint = true
  }
  expect_failures = [var.public_access_cidrs]
}

run "refuses_the_whole_internet" {
  command = plan
  variables {
    public_endpoint     = true
    public_access_cidrs = ["0.0.0.0/0"]
  }
  expect_failures = [var.public_access_cidrs]
}

run "refuses_an_admin_that_is_no_arn" {
  command = plan
  variables {
    admins = { me = "me@example.com" }
  }
  expect_failures = [var.admins]
}

run "refuses_an_identity_that_may_do_nothing" {
  command = plan
  variables {
    pod_identities = { engines = { namespace = "ai-inference", service_account = "speculative" } }
  }
  expect_failures = [var.pod_identities]
}

run "refuses_a_cluster_of_gpu_pools_alone" {
  command = plan
  variables {
    cpu_pool = { min_nodes = 0 }
  }
  expect_failures = [var.cpu_pool]
}

run "refuses_gpus_in_the_cpu_pool" {
  command = plan
  variables {
    cpu_pool = { instance_types = ["g5.xlarge"] }
  }
  expect_failures = [var.cpu_pool]
}

run "refuses_a_retention_that_cloudwatch_lacks" {
  command = plan
  variables {
    log_retention_days = 100
  }
  expect_failures = [var.log_retention_days]
}
