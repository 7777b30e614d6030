mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  cloud             = "gke"
  mode              = "operator"
  pool_driver_modes = ["operator", "operator"]
}

run "operator_mode_on_gke" {
  assert {
    condition     = yamldecode(helm_release.gpu_operator[0].values[0]).driver.enabled == false && yamldecode(helm_release.gpu_operator[0].values[0]).devicePlugin.enabled == true
    error_message = "No driver container on Container-Optimized OS; one device plugin, the operator's."
  }

  assert {
    condition     = yamldecode(helm_release.gpu_operator[0].values[0]).hostPaths.driverInstallDir == "/home/kubernetes/bin/nvidia" && yamldecode(helm_release.gpu_operator[0].values[0]).toolkit.installDir == "/home/kubernetes/bin/nvidia" && yamldecode(helm_release.gpu_operator[0].values[0]).toolkit.enabled && yamldecode(helm_release.gpu_operator[0].values[0]).cdi.enabled
    error_message = "Host paths, toolkit and CDI as GKE 1.33 needs them."
  }

  assert {
    condition     = yamldecode(helm_release.gpu_operator[0].values[0]).dcgmExporter.enabled && !yamldecode(helm_release.gpu_operator[0].values[0]).dcgmExporter.serviceMonitor.enabled
    error_message = "The DCGM exporter is on, without a ServiceMonitor that needs CRDs."
  }

  assert {
    condition     = helm_release.gpu_operator[0].version == "v26.3.2" && helm_release.gpu_operator[0].atomic && helm_release.gpu_operator[0].timeout == 1200 && helm_release.gpu_operator[0].namespace == "gpu-operator"
    error_message = "A pinned version, all or nothing."
  }

  assert {
    condition     = kubernetes_resource_quota_v1.critical_pods[0].spec[0].hard["pods"] == "1000" && kubernetes_resource_quota_v1.critical_pods[0].metadata[0].namespace == "gpu-operator" && kubernetes_resource_quota_v1.critical_pods[0].spec[0].scope_selector[0].match_expression[0].values == toset(["system-node-critical", "system-cluster-critical"]) && kubernetes_resource_quota_v1.critical_pods[0].spec[0].scope_selector[0].match_expression[0].scope_name == "PriorityClass"
    error_message = "The quota that lets critical pods in."
  }

  assert {
    condition     = kubernetes_daemon_set_v1.driver_installer[0].metadata[0].namespace == "kube-system" && kubernetes_daemon_set_v1.driver_installer[0].spec[0].template[0].spec[0].init_container[0].image == "cos-nvidia-installer:fixed" && kubernetes_daemon_set_v1.driver_installer[0].spec[0].template[0].spec[0].container[0].image == "registry.k8s.io/pause:3.10"
    error_message = "Google's installer brings the driver."
  }

  assert {
    condition     = toset(kubernetes_daemon_set_v1.driver_installer[0].spec[0].template[0].spec[0].init_container[0].volume_mount[*].name) == toset(kubernetes_daemon_set_v1.driver_installer[0].spec[0].template[0].spec[0].volume[*].name)
    error_message = "Every mount of the installer has its volume."
  }

  assert {
    condition     = contains([for expression in kubernetes_daemon_set_v1.driver_installer[0].spec[0].template[0].spec[0].affinity[0].node_affinity[0].required_during_scheduling_ignored_during_execution[0].node_selector_term[0].match_expressions : expression.key], "gke-no-default-nvidia-gpu-device-plugin")
    error_message = "The installer leaves nodes alone that GKE manages."
  }

  assert {
    condition     = output.namespace == "gpu-operator" && output.chart_version == "v26.3.2" && output.values.devicePlugin.enabled && length(helm_release.dcgm_monitoring) == 0
    error_message = "Outputs; no PodMonitoring unless asked for."
  }
}

run "gke_managed_mode_never_brings_a_second_device_plugin" {
  command = plan
  variables {
    mode              = "gke-managed"
    pool_driver_modes = ["gke-managed"]
    pod_monitoring    = true
  }

  assert {
    condition     = !output.values.devicePlugin.enabled && !output.values.driver.enabled && output.values.dcgmExporter.enabled && output.values.hostPaths.driverInstallDir == "/home/kubernetes/bin/nvidia"
    error_message = "GKE owns driver and device plugin; the exporter still runs."
  }

  assert {
    condition     = length(kubernetes_daemon_set_v1.driver_installer) == 0 && length(kubernetes_resource_quota_v1.critical_pods) == 1 && length(helm_release.dcgm_monitoring) == 1
    error_message = "No installer, but the quota and the PodMonitoring."
  }
}

run "gke_can_do_without_the_operator" {
  command = plan
  variables {
    mode              = "gke-managed"
    pool_driver_modes = ["gke-managed"]
    install           = false
    pod_monitoring    = true
  }

  assert {
    condition     = length(helm_release.gpu_operator) == 0 && length(kubernetes_namespace_v1.this) == 0 && length(kubernetes_resource_quota_v1.critical_pods) == 0 && length(helm_release.dcgm_monitoring) == 0 && output.namespace == null && output.chart_version == null
    error_message = "Nothing is installed."
  }
}

run "eks_has_driver_and_toolkit_in_its_image" {
  command = plan
  variables {
    cloud               = "eks"
    service_monitor     = true
    chart_version       = "v25.10.1"
    namespace           = "nvidia"
    critical_pods_quota = 50
    pause_image         = "example.com/pause:1"
    timeout_seconds     = 900
  }

  assert {
    condition     = !output.values.driver.enabled && !output.values.toolkit.enabled && output.values.devicePlugin.enabled && output.values.dcgmExporter.serviceMonitor.enabled && !can(output.values.hostPaths)
    error_message = "The operator brings the device plugin and the exporter."
  }

  assert {
    condition     = length(kubernetes_resource_quota_v1.critical_pods) == 0 && length(kubernetes_daemon_set_v1.driver_installer) == 0 && helm_release.gpu_operator[0].version == "v25.10.1" && helm_release.gpu_operator[0].timeout == 900 && kubernetes_namespace_v1.this[0].metadata[0].name == "nvidia"
    error_message = "No quota and no installer on EKS; version, timeout and namespace are choices."
  }
}

run "refuses_two_driver_owners" {
  command = plan
  variables {
    pool_driver_modes = ["operator", "gke-managed"]
  }
  expect_failures = [helm_release.gpu_operator]
}

run "refuses_another_cloud" {
  command = plan
  variables {
    cloud = "aks"
  }
  expect_failures = [var.cloud]
}

run "refuses_an_unknown_mode" {
  command = plan
  variables {
    mode              = "both"
    pool_driver_modes = []
  }
  expect_failures = [var.mode]
}

run "refuses_gke_managed_on_eks" {
  command = plan
  variables {
    cloud             = "eks"
    mode              = "gke-managed"
    pool_driver_modes = []
  }
  expect_failures = [var.mode]
}

run "refuses_operator_mode_without_the_operator" {
  command = plan
  variables {
    install = false
  }
  expect_failures = [var.install]
}

run "refuses_a_version_that_moves" {
  command = plan
  variables {
    chart_version = "latest"
  }
  expect_failures = [var.chart_version]
}

run "refuses_pod_monitoring_on_eks" {
  command = plan
  variables {
    cloud          = "eks"
    pod_monitoring = true
  }
  expect_failures = [var.pod_monitoring]
}

run "refuses_to_scrape_twice" {
  command = plan
  variables {
    pod_monitoring  = true
    service_monitor = true
  }
  expect_failures = [var.pod_monitoring]
}

run "refuses_a_quota_too_small_for_a_node" {
  command = plan
  variables {
    critical_pods_quota = 5
  }
  expect_failures = [var.critical_pods_quota]
}

run "refuses_a_short_timeout" {
  command = plan
  variables {
    timeout_seconds = 60
  }
  expect_failures = [var.timeout_seconds]
}
