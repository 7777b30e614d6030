# Variables of terraform/platform.
cluster_state = {
  backend = "gcs"
  config  = { bucket = "my-project-dev-terraform-state", prefix = "dev/gke" }
}

# KEDA asks it whether anybody waits.
prometheus         = { enabled = true }
external_secrets   = { enabled = true }
hugging_face_token = { remote_secret = "hf-token", service_account = "speculative" }
