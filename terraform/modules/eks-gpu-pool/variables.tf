variable "cluster" {
  description = "Name of the cluster that gets the pool."
  type        = string
}

variable "name" {
  description = "Beginning of the node group's name. Terraform appends 26 characters, so that a replacement can be made before the old group goes; EKS allows 63 in all."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,35}$", var.name))
    error_message = "A pool's name has at most 36 characters: lower-case letters, digits and hyphens, a letter first (EKS allows 63, of which Terraform's suffix takes 26)."
  }
}

variable "subnets" {
  description = "Private subnets that may hold the pool's nodes: availability zone to subnet. More zones find scarce GPUs sooner; a reservation is in one."
  type        = map(string)

  validation {
    condition     = length(var.subnets) > 0
    error_message = "Name at least one subnet."
  }
}

variable "node_role_arn" {
  description = "Role of the nodes (output node_role_arn of eks-cluster)."
  type        = string

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/", var.node_role_arn))
    error_message = "node_role_arn is the ARN of an IAM role."
  }
}

variable "security_group_ids" {
  description = "Security groups of the nodes. With EFA the cluster's must be among them; without, empty takes the cluster's."
  type        = list(string)
  default     = []
}

variable "machine_type" {
  description = "Machine shape: a row of machines.eks in helm/vllm-speculative/files/accelerators.yaml, for example g5.48xlarge or p5.48xlarge."
  type        = string
}

variable "provisioning" {
  description = <<-EOT
    How the nodes are bought.
    on_demand: kept until released. spot: cheap, taken back at any time. reservation: capacity that is already paid for.
    capacity_block: reserved for some days, from a date on.
  EOT
  type        = string
  default     = "on_demand"

  validation {
    condition     = contains(["on_demand", "spot", "reservation", "capacity_block"], var.provisioning)
    error_message = "provisioning is one of on_demand, spot, reservation, capacity_block."
  }
}

variable "capacity_reservation_id" {
  description = "Capacity reservation or block that the nodes use."
  type        = string
  default     = null

  validation {
    condition     = (var.capacity_reservation_id != null) == contains(["reservation", "capacity_block"], var.provisioning)
    error_message = "Give capacity_reservation_id exactly when provisioning is reservation or capacity_block: spot and on_demand nodes cannot use one."
  }

  validation {
    condition     = var.capacity_reservation_id == null || length(var.subnets) == 1
    error_message = "A reservation is in one zone: name the one subnet there."
  }
}

variable "min_nodes" {
  description = "Fewest nodes. 0 pays for no GPU while nothing runs."
  type        = number
  default     = 0

  validation {
    condition     = var.min_nodes >= 0 && floor(var.min_nodes) == var.min_nodes
    error_message = "min_nodes is a whole number, 0 or more."
  }
}

variable "max_nodes" {
  description = "Most nodes."
  type        = number
  default     = 2

  validation {
    condition     = var.max_nodes >= 1 && var.max_nodes >= var.min_nodes && floor(var.max_nodes) == var.max_nodes
    error_message = "max_nodes is a whole number, at least 1 and at least min_nodes."
  }
}

variable "gpus_per_engine" {
  description = "GPUs that one engine takes (tensor parallel × pipeline parallel within a node). Checked against the node's GPUs."
  type        = number
  default     = 1

  validation {
    condition     = contains([1, 2, 4, 8], var.gpus_per_engine)
    error_message = "gpus_per_engine is 1, 2, 4 or 8."
  }
}

variable "efa" {
  description = "Elastic Fabric Adapters, for engines that span nodes. p4de, p5 and p6 machines have them."
  type        = bool
  default     = false

  validation {
    condition     = !var.efa || length(var.security_group_ids) > 0
    error_message = "With EFA, give security_group_ids: the cluster's, and one that lets its members talk freely."
  }

  validation {
    condition     = !var.efa || length(var.subnets) == 1
    error_message = "EFA needs all nodes in one zone: name one subnet."
  }
}

variable "boot_disk_gb" {
  description = "Size of the boot disk. Images and models live on the instance store."
  type        = number
  default     = 100

  validation {
    condition     = var.boot_disk_gb >= 50
    error_message = "The NVIDIA image alone takes 20 GB: give the boot disk 50 GB or more."
  }
}

variable "boot_disk_kms_key" {
  description = "Key that encrypts the boot disk. Null: the account's default."
  type        = string
  default     = null
}

variable "labels" {
  description = "Further Kubernetes labels of the nodes."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key in keys(var.labels) : !can(regex("(^|\\.)(kubernetes\\.io|k8s\\.io|amazonaws\\.com|nvidia\\.com)/", key))])
    error_message = "Labels under kubernetes.io, k8s.io, amazonaws.com and nvidia.com belong to those who set them."
  }
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
