variable "name" {
  description = "Name of the cluster, and the beginning of everything that is made for it."
  type        = string

  validation {
    # "-cluster-autoscaler" is the longest that is appended to it for a role's name, which may have 64 characters.
    condition     = can(regex("^[a-zA-Z][a-zA-Z0-9-]{0,39}$", var.name))
    error_message = "A cluster's name has at most 40 characters: letters, digits and hyphens, a letter first (EKS allows 100, the roles made from it 64)."
  }
}

variable "kubernetes_version" {
  description = "Kubernetes version of the control plane, major.minor."
  type        = string
  default     = "1.33"

  validation {
    condition     = can(regex("^1\\.[0-9]{2}$", var.kubernetes_version))
    error_message = "kubernetes_version is major.minor, such as 1.33; EKS patches by itself."
  }
}

variable "existing_network" {
  description = "Network to use instead of making one: the VPC, and private subnets in two zones or more with a way out."
  type = object({
    vpc_id             = string
    private_subnet_ids = map(string)
  })
  default = null

  validation {
    condition     = var.existing_network == null || length(try(var.existing_network.private_subnet_ids, {})) >= 2
    error_message = "EKS needs private subnets in at least two zones: availability zone to subnet."
  }
}

variable "zones" {
  description = "Availability zones of the network that is made."
  type        = list(string)
  default     = []

  validation {
    condition     = var.existing_network != null || (length(distinct(var.zones)) >= 2 && length(var.zones) <= 4)
    error_message = "EKS needs two availability zones at least; the network that is made has room for four."
  }
}

variable "vpc_cidr" {
  description = "Address range of the VPC that is made. Pods take their addresses from it."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrhost(var.vpc_cidr, 0)) && try(tonumber(split("/", var.vpc_cidr)[1]) <= 20, false)
    error_message = "vpc_cidr is a range of /20 or larger: every pod takes an address of it."
  }
}

variable "service_cidr" {
  description = "Address range of Services."
  type        = string
  default     = "172.20.0.0/16"

  validation {
    condition     = can(cidrhost(var.service_cidr, 0))
    error_message = "service_cidr is a range such as 172.20.0.0/16."
  }

  validation {
    # Two ranges overlap exactly when they are the same after both are cut to the shorter prefix.
    condition = try(
      cidrsubnet("${split("/", var.vpc_cidr)[0]}/${min(split("/", var.vpc_cidr)[1], split("/", var.service_cidr)[1])}", 0, 0) !=
      cidrsubnet("${split("/", var.service_cidr)[0]}/${min(split("/", var.vpc_cidr)[1], split("/", var.service_cidr)[1])}", 0, 0),
      true
    )
    error_message = "service_cidr overlaps vpc_cidr: a Service would shadow a node."
  }
}

variable "one_nat_gateway" {
  description = "One NAT gateway for all zones: cheaper, and one zone's failure cuts all off. False: one a zone."
  type        = bool
  default     = false
}

variable "public_endpoint" {
  description = "Give the control plane a public address beside the private one, for public_access_cidrs."
  type        = bool
  default     = false
}

variable "public_access_cidrs" {
  description = "Networks that may reach the public address."
  type        = list(string)
  default     = []

  validation {
    condition     = !var.public_endpoint || length(var.public_access_cidrs) > 0
    error_message = "A public endpoint needs public_access_cidrs."
  }

  validation {
    condition     = alltrue([for cidr in var.public_access_cidrs : can(cidrhost(cidr, 0)) && cidr != "0.0.0.0/0"])
    error_message = "public_access_cidrs are CIDRs, and not the whole internet."
  }
}

variable "admins" {
  description = "IAM principals that administer the cluster: a name to an ARN. Whoever creates the cluster is none by itself."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for arn in values(var.admins) : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/", arn))])
    error_message = "Admins are ARNs of IAM roles or users."
  }
}

variable "addons" {
  description = "EKS add-ons: name to version. A null version takes EKS's default for the cluster's."
  type        = map(string)
  nullable    = false
  default = {
    vpc-cni                = null
    kube-proxy             = null
    coredns                = null
    eks-pod-identity-agent = null
    aws-ebs-csi-driver     = null
    metrics-server         = null
  }
}

variable "pod_identities" {
  description = "What pods may read: a name to a Kubernetes service account, with ARNs of secrets (the Hugging Face token) and buckets (models)."
  type = map(object({
    namespace       = string
    service_account = string
    secret_arns     = optional(list(string), [])
    bucket_arns     = optional(list(string), [])
  }))
  default = {}

  validation {
    condition     = alltrue([for identity in values(var.pod_identities) : length(identity.secret_arns) + length(identity.bucket_arns) > 0])
    error_message = "A pod identity without secrets or buckets lets its pods do nothing."
  }
}

variable "cluster_autoscaler" {
  description = "Let the cluster autoscaler (platform-addons installs it) scale node groups."
  type        = bool
  default     = true
}

variable "cpu_pool" {
  description = "Node group of CPU nodes for everything that is not an engine."
  type = object({
    instance_types = optional(list(string), ["m6i.xlarge"])
    min_nodes      = optional(number, 2)
    max_nodes      = optional(number, 6)
    disk_gb        = optional(number, 100)
  })
  default = {}

  validation {
    condition     = var.cpu_pool.min_nodes >= 1 && var.cpu_pool.max_nodes >= var.cpu_pool.min_nodes
    error_message = "A cluster needs at least one CPU node: GPU nodes are tainted, and from zero."
  }

  validation {
    condition     = alltrue([for type in var.cpu_pool.instance_types : !can(regex("^(g|p)[0-9]", type))])
    error_message = "The CPU pool takes machines without GPUs; GPU pools are eks-gpu-pool's."
  }
}

variable "log_retention_days" {
  description = "Days that control plane and flow logs are kept."
  type        = number
  default     = 365

  validation {
    condition     = contains([30, 90, 180, 365, 731], var.log_retention_days)
    error_message = "log_retention_days is 30, 90, 180, 365 or 731."
  }
}

variable "flow_logs" {
  description = "Log the traffic of the network that is made."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}
