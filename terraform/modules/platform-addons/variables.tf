variable "cloud" {
  description = "Where the cluster runs: gke or eks."
  type        = string

  validation {
    condition     = contains(["gke", "eks"], var.cloud)
    error_message = "cloud is gke or eks."
  }
}

variable "cluster" {
  description = "Name of the cluster."
  type        = string
}

variable "location" {
  description = "Region of the cluster."
  type        = string
}

variable "project" {
  description = "Google Cloud project, on GKE."
  type        = string
  default     = null

  validation {
    condition     = var.cloud != "gke" || var.project != null
    error_message = "On GKE, name the project."
  }
}

variable "namespace" {
  description = "Namespace of the engines."
  type        = string
  default     = "ai-inference"
}

variable "create_namespace" {
  description = "Make the engines' namespace, with Pod Security at baseline. False: it is there."
  type        = bool
  default     = true
}

variable "keda" {
  description = "KEDA, which scales engines on their metrics. enabled = false: yours is there, or scaling is off."
  type = object({
    enabled = optional(bool, true)
    version = optional(string, "2.17.2")
  })
  default = {}

  validation {
    condition     = can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.keda.version))
    error_message = "Pin one version of KEDA, such as 2.17.2."
  }
}

variable "prometheus" {
  description = "Prometheus with its operator (kube-prometheus-stack). enabled = false: managed collection or a Prometheus of yours."
  type = object({
    enabled        = optional(bool, false)
    version        = optional(string, "75.15.1")
    retention      = optional(string, "15d")
    storage        = optional(string, "100Gi")
    storage_class  = optional(string)
    with_dashboard = optional(bool, true)
  })
  default = {}

  validation {
    condition     = can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.prometheus.version))
    error_message = "Pin one version of kube-prometheus-stack, such as 75.15.1."
  }

  validation {
    condition     = can(regex("^[0-9]+[hdwy]$", var.prometheus.retention)) && can(regex("^[0-9]+[GT]i$", var.prometheus.storage))
    error_message = "retention is a time such as 15d, storage a size such as 100Gi."
  }
}

variable "managed_prometheus" {
  description = "The cluster collects metrics by itself (GKE)."
  type        = bool
  default     = false
}

variable "gateway_api" {
  description = "CRDs of the Gateway API. GKE brings them by itself."
  type = object({
    enabled = optional(bool, false)
    version = optional(string, "v1.5.0")
    channel = optional(string, "standard")
  })
  default = {}

  validation {
    condition     = !(var.gateway_api.enabled && var.cloud == "gke")
    error_message = "GKE installs and upgrades the Gateway API's CRDs itself: two owners would fight."
  }

  validation {
    condition     = can(regex("^v[0-9]+\\.[0-9]+\\.[0-9]+$", var.gateway_api.version)) && contains(["standard", "experimental"], var.gateway_api.channel)
    error_message = "Pin one version of gateway-crds-helm, such as v1.5.0, and a channel: standard or experimental."
  }
}

variable "inference_extension" {
  description = "The InferencePool CRD of the Gateway API inference extension. GKE 1.34 brings it by itself."
  type        = bool
  default     = false
}

variable "external_secrets" {
  description = "External Secrets, which copies secrets from the cloud's store. enabled = false: yours is there, or Secrets are made by hand."
  type = object({
    enabled = optional(bool, false)
    version = optional(string, "0.18.2")
  })
  default = {}

  validation {
    condition     = can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.external_secrets.version))
    error_message = "Pin one version of External Secrets, such as 0.18.2."
  }
}

variable "hugging_face_token" {
  description = "Where the Hugging Face token is: the secret's name in the cloud's store, the Kubernetes service account that may read it, and the Secret to make. The token itself is in no file and no state. Null: you make the Secret."
  type = object({
    remote_secret   = string
    service_account = string
    secret_name     = optional(string, "hf-token")
    secret_key      = optional(string, "token")
  })
  default = null

  validation {
    condition     = !can(regex("hf_[A-Za-z0-9]{20,}", jsonencode(var.hugging_face_token)))
    error_message = "That is a token. Put it into the cloud's secret store and give its name here."
  }
}

variable "cluster_autoscaler" {
  description = "Cluster autoscaler, which grows EKS node groups from zero. GKE has its own."
  type = object({
    enabled = optional(bool, false)
    version = optional(string, "9.46.6")
  })
  default = {}

  validation {
    condition     = !(var.cluster_autoscaler.enabled && var.cloud == "gke")
    error_message = "GKE scales its node pools itself: a second autoscaler would fight it."
  }

  validation {
    condition     = can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.cluster_autoscaler.version))
    error_message = "Pin one version of the cluster-autoscaler chart, such as 9.46.6."
  }
}
