variable "region" {
  description = "Region of the cluster."
  type        = string
}

variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "kubernetes_version" {
  description = "Kubernetes version of the control plane, major.minor."
  type        = string
  default     = "1.33"
}

variable "zones" {
  description = "Availability zones of the network that is made."
  type        = list(string)
  default     = []
}

variable "existing_network" {
  description = "Network to use instead of making one."
  type = object({
    vpc_id             = string
    private_subnet_ids = map(string)
  })
  default = null
}

variable "vpc_cidr" {
  description = "Address range of the VPC that is made."
  type        = string
  default     = "10.0.0.0/16"
}

variable "service_cidr" {
  description = "Address range of Services."
  type        = string
  default     = "172.20.0.0/16"
}

variable "one_nat_gateway" {
  description = "One NAT gateway for all zones."
  type        = bool
  default     = false
}

variable "public_endpoint" {
  description = "Give the control plane a public address."
  type        = bool
  default     = false
}

variable "public_access_cidrs" {
  description = "Networks that may reach the public address."
  type        = list(string)
  default     = []
}

variable "admins" {
  description = "IAM principals that administer the cluster: a name to an ARN. The one that applies the platform root must be among them."
  type        = map(string)
  default     = {}
}

variable "addons" {
  description = "EKS add-ons: name to version, as eks-cluster describes them. Null: its defaults."
  type        = map(string)
  default     = null
}

variable "pod_identities" {
  description = "What pods may read, as eks-cluster describes it."
  type = map(object({
    namespace       = string
    service_account = string
    secret_arns     = optional(list(string), [])
    bucket_arns     = optional(list(string), [])
  }))
  default = {}
}

variable "cluster_autoscaler" {
  description = "Let the cluster autoscaler scale node groups."
  type        = bool
  default     = true
}

variable "cpu_pool" {
  description = "Node group of CPU nodes."
  type = object({
    instance_types = optional(list(string), ["m6i.xlarge"])
    min_nodes      = optional(number, 2)
    max_nodes      = optional(number, 6)
    disk_gb        = optional(number, 100)
  })
  default = {}
}

variable "gpu_pools" {
  description = "GPU pools: the beginning of a pool's name to its settings, as eks-gpu-pool describes them. zones chooses among the cluster's; null takes all."
  type = map(object({
    machine_type            = string
    zones                   = optional(list(string))
    provisioning            = optional(string, "on_demand")
    capacity_reservation_id = optional(string)
    min_nodes               = optional(number, 0)
    max_nodes               = optional(number, 2)
    gpus_per_engine         = optional(number, 1)
    efa                     = optional(bool, false)
    boot_disk_gb            = optional(number, 100)
    labels                  = optional(map(string), {})
  }))
  default = {}

  validation {
    condition = alltrue(flatten([
      for pool in values(var.gpu_pools) : [
        for zone in coalesce(pool.zones, []) : contains(var.existing_network == null ? var.zones : keys(var.existing_network.private_subnet_ids), zone)
      ]
    ]))
    error_message = "A pool's zones must be among the cluster's."
  }
}

variable "disk_kms_key" {
  description = "Key that encrypts the GPU nodes' boot disks. Null: the account's default."
  type        = string
  default     = null
}

variable "log_retention_days" {
  description = "Days that logs are kept."
  type        = number
  default     = 365
}

variable "flow_logs" {
  description = "Log the traffic of the network that is made."
  type        = bool
  default     = true
}

variable "allow_gpu_pool_replacement" {
  description = "Let a plan delete or replace GPU pools. `specdec plan-check` reads it: set it for the one change that needs it."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
