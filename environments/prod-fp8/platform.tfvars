# Variables of terraform/platform.
cluster_state = {
  backend = "gcs"
  config  = { bucket = "my-project-terraform-state", prefix = "prod-fp8/gke" }
}

external_secrets   = { enabled = true }
hugging_face_token = { remote_secret = "hf-token", service_account = "speculative" }
