variable "project_id" {
  description = "Project of the cluster."
  type        = string
}

variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "region" {
  description = "Region of the cluster."
  type        = string
}

variable "zones" {
  description = "Zones of the CPU nodes. Null: GKE chooses three."
  type        = list(string)
  default     = null
}

variable "release_channel" {
  description = "GKE release channel."
  type        = string
  default     = "REGULAR"
}

variable "min_version" {
  description = "Lowest Kubernetes version of the control plane."
  type        = string
  default     = null
}

variable "existing_network" {
  description = "Network to use instead of making one."
  type = object({
    network        = string
    subnetwork     = string
    pods_range     = string
    services_range = string
  })
  default = null
}

variable "cidrs" {
  description = "Address ranges of the network that is made."
  type = object({
    nodes         = optional(string, "10.0.0.0/20")
    pods          = optional(string, "10.4.0.0/14")
    services      = optional(string, "10.8.0.0/20")
    control_plane = optional(string, "172.16.0.0/28")
  })
  default = {}
}

variable "authorized_networks" {
  description = "Networks that may reach the control plane's address: name to CIDR."
  type        = map(string)
  default     = {}
}

variable "public_endpoint" {
  description = "Give the control plane a public address."
  type        = bool
  default     = false
}

variable "dns_endpoint" {
  description = "Let clients with IAM permission reach the control plane by its DNS name."
  type        = bool
  default     = true
}

variable "managed_prometheus" {
  description = "Collect metrics with Managed Service for Prometheus."
  type        = bool
  default     = true
}

variable "cpu_pool" {
  description = "Pool of CPU nodes."
  type = object({
    machine_type = optional(string, "e2-standard-4")
    min_nodes    = optional(number, 1)
    max_nodes    = optional(number, 6)
    disk_gb      = optional(number, 100)
  })
  default = {}
}

variable "gpu_stack" {
  description = "Who owns drivers and device plugins on all GPU pools: \"gke-managed\" or \"operator\". One choice a cluster, so that there are never two owners."
  type        = string
  default     = "gke-managed"

  validation {
    condition     = contains(["gke-managed", "operator"], var.gpu_stack)
    error_message = "gpu_stack is \"gke-managed\" or \"operator\"."
  }
}

variable "gpu_pools" {
  description = "GPU pools: the beginning of a pool's name to its settings, as gke-gpu-pool describes them."
  type = map(object({
    machine_type          = string
    zones                 = list(string)
    check_zones           = optional(bool, true)
    provisioning          = optional(string, "on_demand")
    reservation           = optional(string)
    max_run_duration_days = optional(number, 7)
    spot_shutdown_seconds = optional(number)
    min_nodes             = optional(number, 0)
    max_nodes             = optional(number, 2)
    gpus_per_engine       = optional(number, 1)
    local_ssd_count       = optional(number)
    driver_version        = optional(string, "LATEST")
    image_streaming       = optional(bool, true)
    cache_disk_images     = optional(list(string), [])
    compact_placement     = optional(bool, false)
    labels                = optional(map(string), {})
  }))
  default = {}
}

variable "disk_kms_key" {
  description = "Key that encrypts the GPU nodes' boot disks. Null: Google's."
  type        = string
  default     = null
}

variable "database_encryption_key" {
  description = "Key that encrypts Secrets in etcd. Null: Google's encryption alone."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "Refuse to delete the cluster."
  type        = bool
  default     = true
}

variable "allow_gpu_pool_replacement" {
  description = "Let a plan delete or replace GPU pools. Apply it alone first, then make the change, then set it back to false. `specdec plan-check` reads it too."
  type        = bool
  default     = false
}

variable "workload_buckets" {
  description = "Buckets that pods may read: bucket to NAMESPACE/SERVICEACCOUNT."
  type        = map(string)
  default     = {}
}

variable "workload_secrets" {
  description = "Secrets that pods may read: secret to NAMESPACE/SERVICEACCOUNT."
  type        = map(string)
  default     = {}
}

variable "resource_labels" {
  description = "Google Cloud labels, for billing."
  type        = map(string)
  default     = {}
}
