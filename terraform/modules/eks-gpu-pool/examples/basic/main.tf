# Nodes of eight A10Gs, none while nothing runs.
provider "aws" {
  region = "us-east-1"
}

module "a10g" {
  source = "../.."

  cluster         = "inference"
  name            = "a10g"
  subnets         = { "us-east-1a" = "subnet-0123456789abcdef0", "us-east-1b" = "subnet-0123456789abcdef1" }
  node_role_arn   = "arn:aws:iam::123456789012:role/inference-node"
  machine_type    = "g5.48xlarge"
  gpus_per_engine = 8
}
