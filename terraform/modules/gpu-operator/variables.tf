variable "cloud" {
  description = "Where the cluster runs: gke or eks."
  type        = string

  validation {
    condition     = contains(["gke", "eks"], var.cloud)
    error_message = "cloud is gke or eks."
  }
}

variable "mode" {
  description = <<-EOT
    Who owns drivers and device plugins.
    gke-managed: GKE does; the operator adds its toolkit, feature discovery and the DCGM exporter. operator: the operator's device
    plugin runs; on GKE Google's installer brings the driver, on EKS the machine image has it. The operator never installs a driver:
    it has none for Container-Optimized OS.
  EOT
  type        = string

  validation {
    condition     = contains(["gke-managed", "operator"], var.mode)
    error_message = "mode is gke-managed or operator."
  }

  validation {
    condition     = var.cloud == "gke" || var.mode == "operator"
    error_message = "On EKS nobody but the operator brings a device plugin: mode must be operator."
  }
}

variable "pool_driver_modes" {
  description = "Driver modes of the cluster's GPU pools (output driver_mode of the pool modules). All must agree with mode."
  type        = list(string)
  default     = []
}

variable "install" {
  description = "Install the operator. False: GKE manages everything, or an operator of yours is there."
  type        = bool
  default     = true

  validation {
    condition     = var.install || var.mode == "gke-managed" || var.cloud == "eks"
    error_message = "On GKE in operator mode nobody else brings drivers: install must be true."
  }
}

variable "chart_version" {
  description = "Version of NVIDIA's gpu-operator chart."
  type        = string
  default     = "v26.3.2"

  validation {
    condition     = can(regex("^v[0-9]+\\.[0-9]+\\.[0-9]+$", var.chart_version))
    error_message = "Pin one version, such as v26.3.2: ranges and latest move drivers under a running engine."
  }
}

variable "namespace" {
  description = "Namespace of the operator."
  type        = string
  default     = "gpu-operator"
}

variable "service_monitor" {
  description = "Make a ServiceMonitor for the DCGM exporter. Needs the Prometheus operator's CRDs."
  type        = bool
  default     = false
}

variable "pod_monitoring" {
  description = "Make a PodMonitoring for the DCGM exporter. Needs GKE's managed collection."
  type        = bool
  default     = false

  validation {
    condition     = !var.pod_monitoring || var.cloud == "gke"
    error_message = "PodMonitoring belongs to GKE's managed collection; on EKS use service_monitor."
  }

  validation {
    condition     = !(var.pod_monitoring && var.service_monitor)
    error_message = "Choose service_monitor or pod_monitoring: both would count every GPU twice."
  }
}

variable "critical_pods_quota" {
  description = "Pods that may use the system-critical priority classes in the operator's namespace on GKE. Some eight a GPU node."
  type        = number
  default     = 1000

  validation {
    condition     = var.critical_pods_quota >= 20
    error_message = "The operator runs some eight critical pods a GPU node: allow 20 or more."
  }
}

variable "pause_image" {
  description = "Image that keeps the driver installer's pod alive after it has done its work (GKE, operator mode)."
  type        = string
  default     = "registry.k8s.io/pause:3.10"
}

variable "timeout_seconds" {
  description = "How long an installation may take."
  type        = number
  default     = 1200

  validation {
    condition     = var.timeout_seconds >= 600
    error_message = "Ten minutes is the least: the first node has images to pull."
  }
}
