variable "project_id" {
  description = "Project of the cluster."
  type        = string
}

variable "cluster" {
  description = "Name of the cluster that gets the pool."
  type        = string
}

variable "cluster_version" {
  description = "Kubernetes version of the cluster. Given, it is checked against what provisioning needs. Null: not checked."
  type        = string
  default     = null
}

variable "region" {
  description = "Region of the cluster."
  type        = string
}

variable "name" {
  description = "Beginning of the pool's name. Terraform appends 27 characters, so that a replacement can be made before the old pool goes; GKE allows 40 in all."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,12})$", var.name))
    error_message = "A pool's name has at most 13 characters: lower-case letters, digits and hyphens, a letter first (GKE allows 40, of which a hyphen and Terraform's suffix take 27)."
  }
}

variable "zones" {
  description = "Zones that may hold the pool's nodes. More zones find scarce GPUs sooner."
  type        = list(string)

  validation {
    condition     = length(var.zones) > 0 && length(var.zones) == length(distinct(var.zones))
    error_message = "Name at least one zone, and each once: a pool without zones would take the cluster's, which may not sell the GPU."
  }
}

variable "check_zones" {
  description = "Refuse a zone that is not known to sell the accelerator (zones.yaml). Set to false for a zone that Google has added since."
  type        = bool
  default     = true
}

variable "machine_type" {
  description = "Machine shape: a row of machines.gke in helm/vllm-speculative/files/accelerators.yaml, for example a3-highgpu-8g or g2-standard-48."
  type        = string
}

variable "provisioning" {
  description = <<-EOT
    How the nodes are bought.
    on_demand: kept until released. spot: cheap, taken back at any time. flex_start: waits for capacity, lives seven days at most.
    queued: all nodes of a request at once, through ProvisioningRequest. reservation: capacity that is already paid for.
  EOT
  type        = string
  default     = "on_demand"

  validation {
    condition     = contains(["on_demand", "spot", "flex_start", "queued", "reservation"], var.provisioning)
    error_message = "provisioning is one of on_demand, spot, flex_start, queued, reservation."
  }
}

variable "reservation" {
  description = "Reservation that the nodes use, with `provisioning = \"reservation\"`: its name, or projects/PROJECT/reservations/NAME for a shared one."
  type        = string
  default     = null

  validation {
    condition     = (var.reservation != null) == (var.provisioning == "reservation")
    error_message = "Give reservation exactly when provisioning is \"reservation\": spot, flex_start, queued and on_demand nodes cannot use one."
  }
}

variable "max_run_duration_days" {
  description = "Days after which a flex_start or queued node ends. Google ends it after seven in any case."
  type        = number
  default     = 7

  validation {
    condition     = var.max_run_duration_days > 0 && var.max_run_duration_days <= 7
    error_message = "A flex-start node lives seven days at most, and more than none."
  }
}

variable "spot_shutdown_seconds" {
  description = "Seconds from the notice that a spot node is taken back to its end: 30, or 120 from GKE 1.35 on. Pods have 15 less. Null: GKE's 30."
  type        = number
  default     = null

  validation {
    condition     = var.spot_shutdown_seconds == null || contains([30, 120], coalesce(var.spot_shutdown_seconds, 30))
    error_message = "spot_shutdown_seconds is 30 or 120: GKE knows no other."
  }

  validation {
    condition     = var.spot_shutdown_seconds == null || var.provisioning == "spot"
    error_message = "spot_shutdown_seconds is for provisioning = \"spot\" alone."
  }
}

variable "min_nodes" {
  description = "Fewest nodes over all zones. 0 pays for no GPU while nothing runs."
  type        = number
  default     = 0

  validation {
    condition     = var.min_nodes >= 0 && floor(var.min_nodes) == var.min_nodes
    error_message = "min_nodes is a whole number, 0 or more."
  }

  validation {
    condition     = var.min_nodes == 0 || !contains(["queued", "flex_start"], var.provisioning)
    error_message = "A queued or flex_start pool starts from zero nodes: min_nodes must be 0."
  }
}

variable "max_nodes" {
  description = "Most nodes over all zones."
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

variable "local_ssd_count" {
  description = "Local SSDs behind the node's ephemeral storage, where emptyDir volumes and images live. Null: as many as the shape has."
  type        = number
  default     = null
}

variable "driver_mode" {
  description = "Who owns the GPU driver and the device plugin: \"gke-managed\" (GKE installs both) or \"operator\" (the gpu-operator module does, GKE keeps out)."
  type        = string
  default     = "gke-managed"

  validation {
    condition     = contains(["gke-managed", "operator"], var.driver_mode)
    error_message = "driver_mode is \"gke-managed\" or \"operator\": a node has one owner of its driver."
  }
}

variable "driver_version" {
  description = "Which driver GKE installs in gke-managed mode: DEFAULT or LATEST."
  type        = string
  default     = "LATEST"

  validation {
    condition     = contains(["DEFAULT", "LATEST"], var.driver_version)
    error_message = "driver_version is DEFAULT or LATEST; driver_mode = \"operator\" is the way to switch GKE's driver off."
  }
}

variable "service_account" {
  description = "E-mail of the nodes' service account (output node_service_account of gke-cluster)."
  type        = string

  validation {
    condition     = can(regex("@", var.service_account))
    error_message = "Give a service account's e-mail: the default Compute Engine account may edit the whole project."
  }
}

variable "boot_disk_gb" {
  description = "Size of the boot disk. Images live on the local SSDs where there are any."
  type        = number
  default     = 200

  validation {
    condition     = var.boot_disk_gb >= 100
    error_message = "The engine's image alone takes some 30 GB: give the boot disk 100 GB or more."
  }
}

variable "boot_disk_type" {
  description = "Type of the boot disk: pd-ssd, pd-balanced or hyperdisk-balanced. Null: pd-ssd, or hyperdisk-balanced on machines that take nothing else (A3 Ultra, A4, G4)."
  type        = string
  default     = null

  validation {
    condition     = var.boot_disk_type == null || contains(["pd-ssd", "pd-balanced", "hyperdisk-balanced"], coalesce(var.boot_disk_type, "-"))
    error_message = "boot_disk_type is pd-ssd, pd-balanced or hyperdisk-balanced."
  }
}

variable "boot_disk_kms_key" {
  description = "Key that encrypts the boot disk. Null: Google's."
  type        = string
  default     = null
}

variable "image_streaming" {
  description = "Start containers before their whole image is on the node."
  type        = bool
  default     = true
}

variable "cache_disk_images" {
  description = "Disk images with container images or models, attached to each node as secondary boot disks: warm starts without a download. Needs image streaming."
  type        = list(string)
  default     = []

  validation {
    condition     = length(var.cache_disk_images) == 0 || var.image_streaming
    error_message = "Secondary boot disks need image_streaming = true."
  }
}

variable "compact_placement" {
  description = "Put the nodes close to each other, for engines that span nodes. One zone only."
  type        = bool
  default     = false

  validation {
    condition     = !var.compact_placement || length(var.zones) == 1
    error_message = "Compact placement keeps all nodes in one zone: name exactly one."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete or replace the pool. To replace it: set to false and apply, then make the change."
  type        = bool
  default     = true
}

variable "labels" {
  description = "Further Kubernetes labels of the nodes."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key in keys(var.labels) : !can(regex("(^|\\.)(kubernetes\\.io|k8s\\.io|google\\.com)/", key))])
    error_message = "Labels under kubernetes.io, k8s.io and google.com belong to Kubernetes and GKE, which set them."
  }
}

variable "resource_labels" {
  description = "Google Cloud labels of the machines, for billing."
  type        = map(string)
  default     = {}
}
