# Variables of terraform/eks. Machines of eight A10G, each for one engine; none while nothing runs.
region = "us-east-1"
name   = "inference-prod-aws"
zones  = ["us-east-1a", "us-east-1b", "us-east-1d"]

gpu_pools = {
  a10g = {
    machine_type    = "g5.48xlarge"
    provisioning    = "on_demand"
    gpus_per_engine = 8
    max_nodes       = 2
  }
}

# Whoever applies terraform/platform has to be among them.
admins = { platform = "arn:aws:iam::123456789012:role/platform" }

pod_identities = {
  engines = {
    namespace       = "ai-inference"
    service_account = "speculative"
    secret_arns     = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:hf-token-AbCdEf"]
  }
}

tags = { environment = "prod-aws" }
