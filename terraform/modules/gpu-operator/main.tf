locals {
  gke             = var.cloud == "gke"
  install_drivers = var.install && local.gke && var.mode == "operator"

  # Where GKE, or Google's installer, puts the driver on Container-Optimized OS. The rest of the root file system is read-only.
  gke_driver_dir = "/home/kubernetes/bin/nvidia"

  values = merge(
    {
      driver       = { enabled = false }
      devicePlugin = { enabled = var.mode == "operator" }
      cdi          = { enabled = true }
      # On EKS the machine image has the toolkit.
      toolkit = merge({ enabled = local.gke }, local.gke ? { installDir = local.gke_driver_dir } : {})
      dcgmExporter = {
        enabled        = true
        serviceMonitor = { enabled = var.service_monitor }
      }
      gfd        = { enabled = true }
      migManager = { enabled = false }
      ccManager  = { enabled = false }
    },
    local.gke ? { hostPaths = { driverInstallDir = local.gke_driver_dir } } : {},
  )
}

resource "kubernetes_namespace_v1" "this" {
  count = var.install ? 1 : 0

  metadata {
    name = var.namespace
    labels = {
      # Driver and toolkit containers touch the host.
      "pod-security.kubernetes.io/enforce" = "privileged"
    }
  }
}

# GKE admits pods of the system-critical priority classes outside kube-system only where a quota allows them.
resource "kubernetes_resource_quota_v1" "critical_pods" {
  count = var.install && local.gke ? 1 : 0

  metadata {
    name      = "gpu-operator-critical-pods"
    namespace = kubernetes_namespace_v1.this[0].metadata[0].name
  }

  spec {
    hard = { pods = tostring(var.critical_pods_quota) }

    scope_selector {
      match_expression {
        scope_name = "PriorityClass"
        operator   = "In"
        values     = ["system-node-critical", "system-cluster-critical"]
      }
    }
  }
}

resource "helm_release" "gpu_operator" {
  count = var.install ? 1 : 0

  name       = "gpu-operator"
  namespace  = kubernetes_namespace_v1.this[0].metadata[0].name
  repository = "https://helm.ngc.nvidia.com/nvidia"
  chart      = "gpu-operator"
  version    = var.chart_version

  values  = [yamlencode(local.values)]
  wait    = true
  timeout = var.timeout_seconds
  # A half-installed operator leaves nodes without GPUs.
  atomic = true

  depends_on = [kubernetes_resource_quota_v1.critical_pods, kubernetes_daemon_set_v1.driver_installer]

  lifecycle {
    precondition {
      condition     = alltrue([for mode in var.pool_driver_modes : mode == var.mode])
      error_message = "Two driver owners: the operator is in ${var.mode} mode, but GPU pools say ${join(", ", [for mode in distinct(var.pool_driver_modes) : mode if mode != var.mode])}. Give the cluster one gpu_stack."
    }
  }
}

resource "helm_release" "dcgm_monitoring" {
  count = var.install && var.pod_monitoring ? 1 : 0

  name      = "dcgm-monitoring"
  namespace = kubernetes_namespace_v1.this[0].metadata[0].name
  chart     = "${path.module}/charts/dcgm-monitoring"

  depends_on = [helm_release.gpu_operator]
}
