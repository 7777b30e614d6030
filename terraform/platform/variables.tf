variable "cluster_state" {
  description = "Where the cluster root keeps its state: the backend (gcs or s3) and its settings, as in environments/ENV/backend.*.hcl. Null: give cluster."
  type = object({
    backend = string
    config  = map(string)
  })
  default = null

  validation {
    condition     = var.cluster_state == null || contains(["gcs", "s3", "local"], try(var.cluster_state.backend, ""))
    error_message = "cluster_state.backend is gcs, s3 or local."
  }
}

variable "cluster" {
  description = "The cluster, where another Terraform made it: what the cluster roots give as output platform. Null: read from cluster_state."
  type = object({
    cloud              = string
    name               = string
    location           = string
    project            = optional(string)
    host               = string
    ca_certificate     = optional(string)
    gpu_stack          = string
    managed_prometheus = optional(bool, false)
    gpu_driver_modes   = optional(list(string), [])
  })
  default = null

  validation {
    condition     = (var.cluster == null) != (var.cluster_state == null)
    error_message = "Give cluster_state or cluster, one of the two."
  }
}

variable "gpu_operator" {
  description = "NVIDIA GPU Operator. Its mode is the cluster's gpu_stack."
  type = object({
    install       = optional(bool, true)
    chart_version = optional(string, "v26.3.2")
  })
  default = {}
}

variable "namespace" {
  description = "Namespace of the engines."
  type        = string
  default     = "ai-inference"
}

variable "create_namespace" {
  description = "Make the engines' namespace."
  type        = bool
  default     = true
}

variable "keda" {
  description = "KEDA, as platform-addons describes it."
  type = object({
    enabled = optional(bool, true)
    version = optional(string, "2.17.2")
  })
  default = {}
}

variable "prometheus" {
  description = "Prometheus, as platform-addons describes it."
  type = object({
    enabled        = optional(bool, false)
    version        = optional(string, "75.15.1")
    retention      = optional(string, "15d")
    storage        = optional(string, "100Gi")
    storage_class  = optional(string)
    with_dashboard = optional(bool, true)
  })
  default = {}
}

variable "gateway_api" {
  description = "CRDs of the Gateway API, as platform-addons describes them."
  type = object({
    enabled = optional(bool, false)
    version = optional(string, "v1.5.0")
    channel = optional(string, "standard")
  })
  default = {}
}

variable "inference_extension" {
  description = "The InferencePool CRD."
  type        = bool
  default     = false
}

variable "external_secrets" {
  description = "External Secrets, as platform-addons describes it."
  type = object({
    enabled = optional(bool, false)
    version = optional(string, "0.18.2")
  })
  default = {}
}

variable "hugging_face_token" {
  description = "Where the Hugging Face token is, as platform-addons describes it."
  type = object({
    remote_secret   = string
    service_account = string
    secret_name     = optional(string, "hf-token")
    secret_key      = optional(string, "token")
  })
  default = null
}

variable "cluster_autoscaler" {
  description = "Cluster autoscaler on EKS, as platform-addons describes it. Null: on EKS yes, on GKE no."
  type = object({
    enabled = optional(bool, false)
    version = optional(string, "9.46.6")
  })
  default = null
}
