# KEDA and External Secrets on a GKE cluster with managed collection. The cluster is the current context of ~/.kube/config.
provider "helm" {
  kubernetes = {
    config_path = "~/.kube/config"
  }
}

provider "kubernetes" {
  config_path = "~/.kube/config"
}

module "addons" {
  source = "../.."

  cloud              = "gke"
  cluster            = "inference"
  location           = "us-central1"
  project            = "example-project"
  managed_prometheus = true
  external_secrets   = { enabled = true }
  hugging_face_token = { remote_secret = "hf-token", service_account = "speculative" }
}
