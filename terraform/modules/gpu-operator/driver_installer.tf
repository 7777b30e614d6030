# Google's driver installer for Container-Optimized OS, as its own manifest has it: every node carries the image that fits its
# kernel. source: GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer/cos/daemonset-preloaded.yaml
locals {
  installer_mounts = {
    dev                     = { host = "/dev", container = "/dev" }
    root-mount              = { host = "/", container = "/root" }
    cos-tools               = { host = "/var/lib/cos-tools", container = "/build/cos-tools" }
    nvidia-install-dir-host = { host = local.gke_driver_dir, container = "/usr/local/nvidia" }
    vulkan-icd-mount        = { host = "${local.gke_driver_dir}/vulkan/icd.d", container = "/etc/vulkan/icd.d" }
  }

  installer_environment = {
    NVIDIA_INSTALL_DIR_HOST      = local.gke_driver_dir
    NVIDIA_INSTALL_DIR_CONTAINER = "/usr/local/nvidia"
    VULKAN_ICD_DIR_HOST          = "${local.gke_driver_dir}/vulkan/icd.d"
    VULKAN_ICD_DIR_CONTAINER     = "/etc/vulkan/icd.d"
    ROOT_MOUNT_DIR               = "/root"
    COS_TOOLS_DIR_HOST           = "/var/lib/cos-tools"
    COS_TOOLS_DIR_CONTAINER      = "/build/cos-tools"
  }
}

resource "kubernetes_daemon_set_v1" "driver_installer" {
  count = local.install_drivers ? 1 : 0

  metadata {
    name      = "nvidia-driver-installer"
    namespace = "kube-system"
    labels    = { k8s-app = "nvidia-driver-installer" }
  }

  # There are no GPU nodes yet, and none is needed for the rest.
  wait_for_rollout = false

  spec {
    selector {
      match_labels = { k8s-app = "nvidia-driver-installer" }
    }

    strategy {
      type = "RollingUpdate"
    }

    template {
      metadata {
        labels = { k8s-app = "nvidia-driver-installer", name = "nvidia-driver-installer" }
      }

      spec {
        priority_class_name             = "system-node-critical"
        host_network                    = true
        host_pid                        = true
        automount_service_account_token = false

        affinity {
          node_affinity {
            required_during_scheduling_ignored_during_execution {
              node_selector_term {
                match_expressions {
                  key      = "cloud.google.com/gke-accelerator"
                  operator = "Exists"
                }
                # Only nodes that GKE leaves alone.
                match_expressions {
                  key      = "gke-no-default-nvidia-gpu-device-plugin"
                  operator = "Exists"
                }
                match_expressions {
                  key      = "cloud.google.com/gke-gpu-driver-version"
                  operator = "DoesNotExist"
                }
              }
            }
          }
        }

        toleration {
          operator = "Exists"
        }

        init_container {
          name              = "nvidia-driver-installer"
          image             = "cos-nvidia-installer:fixed"
          image_pull_policy = "Never"

          security_context {
            privileged = true
          }

          resources {
            requests = { cpu = "150m" }
          }

          dynamic "env" {
            for_each = local.installer_environment
            content {
              name  = env.key
              value = env.value
            }
          }

          dynamic "volume_mount" {
            for_each = local.installer_mounts
            content {
              name       = volume_mount.key
              mount_path = volume_mount.value.container
            }
          }
        }

        container {
          name  = "pause"
          image = var.pause_image

          security_context {
            allow_privilege_escalation = false
            read_only_root_filesystem  = true
            run_as_non_root            = true
            run_as_user                = 65535
            capabilities {
              drop = ["ALL"]
            }
          }

          resources {
            requests = { cpu = "10m", memory = "16Mi" }
            limits   = { cpu = "10m", memory = "16Mi" }
          }
        }

        dynamic "volume" {
          for_each = local.installer_mounts
          content {
            name = volume.key
            host_path {
              path = volume.value.host
            }
          }
        }
      }
    }
  }
}
