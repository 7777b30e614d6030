# The operator on a GKE cluster whose pools have driver_mode = "operator". The cluster is the current context of ~/.kube/config.
provider "helm" {
  kubernetes = {
    config_path = "~/.kube/config"
  }
}

provider "kubernetes" {
  config_path = "~/.kube/config"
}

module "gpu_operator" {
  source = "../.."

  cloud             = "gke"
  mode              = "operator"
  pool_driver_modes = ["operator"]
  pod_monitoring    = true
}
