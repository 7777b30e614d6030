data "terraform_remote_state" "cluster" {
  count = var.cluster == null ? 1 : 0

  backend = var.cluster_state.backend
  config  = var.cluster_state.config

  lifecycle {
    postcondition {
      condition     = can(self.outputs.platform.host)
      error_message = "The state in cluster_state has no cluster: apply terraform/gke or terraform/eks first."
    }
  }
}

locals {
  cluster = var.cluster == null ? data.terraform_remote_state.cluster[0].outputs.platform : var.cluster
}

module "gpu_operator" {
  source = "../modules/gpu-operator"

  cloud             = local.cluster.cloud
  mode              = local.cluster.gpu_stack
  pool_driver_modes = local.cluster.gpu_driver_modes
  install           = var.gpu_operator.install
  chart_version     = var.gpu_operator.chart_version
  pod_monitoring    = local.cluster.managed_prometheus
  service_monitor   = var.prometheus.enabled

  # A ServiceMonitor needs Prometheus' CRDs.
  depends_on = [module.addons]
}

module "addons" {
  source = "../modules/platform-addons"

  cloud               = local.cluster.cloud
  cluster             = local.cluster.name
  location            = local.cluster.location
  project             = try(local.cluster.project, null)
  managed_prometheus  = local.cluster.managed_prometheus
  namespace           = var.namespace
  create_namespace    = var.create_namespace
  keda                = var.keda
  prometheus          = var.prometheus
  gateway_api         = var.gateway_api
  inference_extension = var.inference_extension
  external_secrets    = var.external_secrets
  hugging_face_token  = var.hugging_face_token
  cluster_autoscaler  = var.cluster_autoscaler == null ? { enabled = local.cluster.cloud == "eks" } : var.cluster_autoscaler
}
