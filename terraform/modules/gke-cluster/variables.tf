variable "project_id" {
  description = "Project of the cluster."
  type        = string
}

variable "name" {
  description = "Name of the cluster, and the beginning of everything that is made for it."
  type        = string

  validation {
    # The node service account appends "-nodes" and may have 30 characters.
    condition     = can(regex("^[a-z][a-z0-9-]{4,22}[a-z0-9]$", var.name))
    error_message = "A cluster's name has 6 to 24 characters: lower-case letters, digits and hyphens, a letter first, no hyphen last (GKE allows 40, the service account made from it 30)."
  }
}

variable "region" {
  description = "Region of the cluster: its control plane and CPU nodes are in several zones."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "Give a region such as us-central1, not a zone: the control plane is regional."
  }
}

variable "zones" {
  description = "Zones of the CPU nodes. Null: GKE chooses three."
  type        = list(string)
  default     = null

  validation {
    condition     = var.zones == null || alltrue([for zone in coalesce(var.zones, []) : startswith(zone, "${var.region}-")])
    error_message = "Every zone must lie in the cluster's region."
  }
}

variable "release_channel" {
  description = "GKE release channel: RAPID, REGULAR or STABLE."
  type        = string
  default     = "REGULAR"

  validation {
    condition     = contains(["RAPID", "REGULAR", "STABLE"], var.release_channel)
    error_message = "release_channel is RAPID, REGULAR or STABLE. Without a channel nothing upgrades by itself."
  }
}

variable "min_version" {
  description = "Lowest Kubernetes version of the control plane. Flex-start needs 1.32.2-gke.1652000."
  type        = string
  default     = null

  validation {
    condition     = var.min_version == null || can(regex("^1\\.[0-9]+", var.min_version))
    error_message = "min_version is a Kubernetes version such as 1.33 or 1.32.2-gke.1652000."
  }
}

variable "existing_network" {
  description = "Network to use instead of making one: names of the network, the subnetwork and its secondary ranges. Its NAT is yours too."
  type = object({
    network        = string
    subnetwork     = string
    pods_range     = string
    services_range = string
  })
  default = null
}

variable "cidrs" {
  description = "Address ranges of the network that is made: nodes, pods, services. control_plane is a /28 of its own, in your network too."
  type = object({
    nodes         = optional(string, "10.0.0.0/20")
    pods          = optional(string, "10.4.0.0/14")
    services      = optional(string, "10.8.0.0/20")
    control_plane = optional(string, "172.16.0.0/28")
  })
  default = {}

  validation {
    condition     = alltrue([for cidr in values(var.cidrs) : can(cidrhost(cidr, 0))])
    error_message = "Every range is a CIDR such as 10.0.0.0/20."
  }

  validation {
    condition     = can(regex("/28$", var.cidrs.control_plane))
    error_message = "The control plane takes a /28."
  }

  validation {
    # Two ranges overlap exactly when they are the same after both are cut to the shorter prefix.
    condition = alltrue(flatten([
      for a, first in var.cidrs : [
        for b, second in var.cidrs :
        try(
          cidrsubnet("${split("/", first)[0]}/${min(split("/", first)[1], split("/", second)[1])}", 0, 0) !=
          cidrsubnet("${split("/", second)[0]}/${min(split("/", first)[1], split("/", second)[1])}", 0, 0),
          true
        )
        if a != b
      ]
    ]))
    error_message = "The ranges overlap: nodes, pods, services and control plane each need their own."
  }
}

variable "authorized_networks" {
  description = "Networks that may reach the control plane's address: name to CIDR."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for cidr in values(var.authorized_networks) : can(cidrhost(cidr, 0)) && cidr != "0.0.0.0/0"])
    error_message = "Authorized networks are CIDRs, and not the whole internet."
  }
}

variable "public_endpoint" {
  description = "Give the control plane a public address beside the private one. The authorized networks guard it."
  type        = bool
  default     = false

  validation {
    condition     = !var.public_endpoint || length(var.authorized_networks) > 0
    error_message = "A public endpoint needs authorized_networks."
  }
}

variable "dns_endpoint" {
  description = "Let clients with IAM permission reach the control plane by its DNS name from outside the network, as a pipeline without VPN needs."
  type        = bool
  default     = true
}

variable "managed_prometheus" {
  description = "Collect metrics with Managed Service for Prometheus. False: bring a Prometheus of your own."
  type        = bool
  default     = true
}

variable "monitoring_components" {
  description = "What GKE itself sends to Cloud Monitoring."
  type        = list(string)
  default     = ["SYSTEM_COMPONENTS", "POD", "STATEFULSET", "DEPLOYMENT"]

  validation {
    condition     = contains(var.monitoring_components, "SYSTEM_COMPONENTS")
    error_message = "monitoring_components must hold SYSTEM_COMPONENTS: GKE refuses the others without it."
  }
}

variable "cpu_pool" {
  description = "Pool of CPU nodes for everything that is not an engine: system pods, router, KEDA, Prometheus. Nodes are counted over all zones."
  type = object({
    machine_type = optional(string, "e2-standard-4")
    min_nodes    = optional(number, 1)
    max_nodes    = optional(number, 6)
    disk_gb      = optional(number, 100)
  })
  default = {}

  validation {
    condition     = var.cpu_pool.min_nodes >= 1 && var.cpu_pool.max_nodes >= var.cpu_pool.min_nodes
    error_message = "A cluster needs at least one CPU node: GPU nodes are tainted, and from zero."
  }

  validation {
    condition     = !can(regex("^(a2|a3|a4|a4x|g2|g4)-", var.cpu_pool.machine_type))
    error_message = "The CPU pool takes a machine without GPUs; GPU pools are gke-gpu-pool's."
  }
}

variable "maintenance" {
  description = "When GKE may upgrade, in UTC and RFC 5545: by default on weekends between 02:00 and 10:00."
  type = object({
    start      = optional(string, "2026-01-03T02:00:00Z")
    end        = optional(string, "2026-01-03T10:00:00Z")
    recurrence = optional(string, "FREQ=WEEKLY;BYDAY=SA,SU")
  })
  default = {}
}

variable "database_encryption_key" {
  description = "Cloud KMS key that encrypts Secrets in etcd once more. Null: Google's encryption alone."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "Refuse to delete the cluster. To delete it: set to false and apply, then destroy."
  type        = bool
  default     = true
}

variable "workload_buckets" {
  description = "Buckets that pods may read through GCS FUSE: bucket to Kubernetes service account, as NAMESPACE/NAME."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for account in values(var.workload_buckets) : can(regex("^[a-z0-9-]+/[a-z0-9-]+$", account))])
    error_message = "A Kubernetes service account is written NAMESPACE/NAME."
  }
}

variable "workload_secrets" {
  description = "Secrets of Secret Manager that pods may read, the Hugging Face token for one: secret to Kubernetes service account, as NAMESPACE/NAME."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for account in values(var.workload_secrets) : can(regex("^[a-z0-9-]+/[a-z0-9-]+$", account))])
    error_message = "A Kubernetes service account is written NAMESPACE/NAME."
  }
}

variable "resource_labels" {
  description = "Google Cloud labels, for billing."
  type        = map(string)
  default     = {}
}
