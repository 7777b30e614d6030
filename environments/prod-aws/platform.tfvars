# Variables of terraform/platform.
cluster_state = {
  backend = "s3"
  config  = { bucket = "my-company-terraform-state", key = "prod-aws/eks", region = "us-east-1" }
}

external_secrets   = { enabled = true }
hugging_face_token = { remote_secret = "hf-token", service_account = "speculative" }
