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
      vpc_config            = { cluster_security_group_id = "sg-cluster" }
    }
  }
}

variables {
  region = "us-east-1"
  name   = "inference"
  zones  = ["us-east-1a", "us-east-1b"]
  gpu_pools = {
    a10g = { machine_type = "g5.48xlarge", gpus_per_engine = 8 }
  }
}

run "a_cluster_with_an_a10g_pool" {
  assert {
    condition     = output.gpu_pools["a10g"].gpus_per_node == 8 && output.gpu_pools["a10g"].engines_per_node == 1 && output.gpu_pools["a10g"].accelerator == "a10g" && output.gpu_pools["a10g"].max_gpus == 16 && output.gpu_pools["a10g"].ephemeral_storage_gib == 7078
    error_message = "One engine of eight A10Gs a node."
  }

  assert {
    condition     = output.gpu_pools["a10g"].node_labels["vllm-speculative/accelerator"] == "a10g" && one(output.gpu_pools["a10g"].taints).key == "nvidia.com/gpu" && length(output.gpu_pools["a10g"].name) > 0
    error_message = "Pods can find the nodes."
  }

  assert {
    condition     = output.platform.cloud == "eks" && output.platform.name == "inference" && output.platform.location == "us-east-1" && output.platform.host == "https://1234.gr7.us-east-1.eks.amazonaws.com" && output.platform.ca_certificate == "certificate" && output.platform.gpu_stack == "operator" && one(output.platform.gpu_driver_modes) == "operator" && !output.platform.managed_prometheus && output.platform.project == null
    error_message = "What the platform root needs."
  }

  assert {
    condition     = output.connect == "aws eks update-kubeconfig --name inference --region us-east-1" && output.cluster.kubernetes_version == "1.33" && output.cluster.kms_key_arn == "arn:aws:kms:us-east-1:123456789012:key/mock" && length(output.cluster.vpc_id) > 0 && length(output.cluster.cpu_pool) > 0 && output.allow_gpu_pool_replacement == false && length(aws_security_group.efa) == 0
    error_message = "Other outputs; no EFA group unless a pool needs it."
  }
}

run "an_h100_pool_with_efa_in_one_zone" {
  command = plan
  variables {
    gpu_pools = {
      h100 = { machine_type = "p5.48xlarge", zones = ["us-east-1b"], efa = true, boot_disk_gb = 200, max_nodes = 4, labels = { team = "inference" } }
      spot = { machine_type = "g5.12xlarge", provisioning = "spot", gpus_per_engine = 4, min_nodes = 1 }
      kept = { machine_type = "p5.48xlarge", zones = ["us-east-1a"], provisioning = "capacity_block", capacity_reservation_id = "cr-0123456789abcdef0" }
    }
    kubernetes_version         = "1.32"
    vpc_cidr                   = "10.64.0.0/16"
    service_cidr               = "10.96.0.0/16"
    one_nat_gateway            = true
    public_endpoint            = true
    public_access_cidrs        = ["203.0.113.0/24"]
    admins                     = { platform = "arn:aws:iam::123456789012:role/platform" }
    addons                     = {}
    pod_identities             = { engines = { namespace = "ai-inference", service_account = "speculative", secret_arns = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:hf"] } }
    cluster_autoscaler         = false
    cpu_pool                   = { max_nodes = 3 }
    disk_kms_key               = "arn:aws:kms:us-east-1:123456789012:key/1234"
    log_retention_days         = 30
    flow_logs                  = false
    allow_gpu_pool_replacement = true
    tags                       = { team = "inference" }
  }

  assert {
    condition     = length(aws_security_group.efa) == 1 && aws_vpc_security_group_ingress_rule.efa[0].ip_protocol == "-1" && aws_vpc_security_group_egress_rule.efa[0].ip_protocol == "-1"
    error_message = "A group for EFA traffic."
  }

  assert {
    condition     = output.gpu_pools["h100"].max_gpus == 32 && output.gpu_pools["spot"].engines_per_node == 1 && output.gpu_pools["kept"].accelerator == "h100-80gb" && output.allow_gpu_pool_replacement
    error_message = "Three pools."
  }
}

run "a_network_of_your_own" {
  command = plan
  variables {
    zones            = []
    existing_network = { vpc_id = "vpc-1234", private_subnet_ids = { "us-east-1a" = "subnet-1", "us-east-1b" = "subnet-2" } }
    gpu_pools        = { a10g = { machine_type = "g5.48xlarge", zones = ["us-east-1a"] } }
  }

  assert {
    condition     = output.cluster.vpc_id == "vpc-1234"
    error_message = "Your network."
  }
}

run "refuses_a_pool_outside_the_cluster" {
  command = plan
  variables {
    gpu_pools = { a10g = { machine_type = "g5.48xlarge", zones = ["us-east-1f"] } }
  }
  expect_failures = [var.gpu_pools]
}
