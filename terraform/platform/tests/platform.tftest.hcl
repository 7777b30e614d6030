mock_provider "helm" {}
mock_provider "kubernetes" {}

override_data {
  target = data.terraform_remote_state.cluster
  values = {
    outputs = {
      platform = {
        cloud              = "gke"
        name               = "inference"
        location           = "us-central1"
        project            = "example-project"
        host               = "https://gke-1234.us-central1.gke.goog"
        ca_certificate     = null
        gpu_stack          = "gke-managed"
        managed_prometheus = true
        gpu_driver_modes   = ["gke-managed"]
      }
    }
  }
}

run "on_gke_from_the_state_of_the_cluster" {
  command = plan
  variables {
    cluster_state = { backend = "local", config = { path = "cluster.tfstate" } }
  }

  assert {
    condition     = !output.gpu_operator.values.devicePlugin.enabled && output.gpu_operator.namespace == "gpu-operator" && output.versions == { keda = "2.17.2", gpu_operator = "v26.3.2" }
    error_message = "The operator keeps to the cluster's gpu_stack; no second autoscaler."
  }

  assert {
    condition     = output.namespace == "ai-inference" && output.prometheus_address == null && output.token_secret == null
    error_message = "Outputs."
  }
}

run "on_an_eks_cluster_of_yours" {
  command = plan
  variables {
    cluster = {
      cloud            = "eks"
      name             = "inference"
      location         = "us-east-1"
      host             = "https://1234.gr7.us-east-1.eks.amazonaws.com"
      ca_certificate   = "certificate"
      gpu_stack        = "operator"
      gpu_driver_modes = ["operator"]
    }
    gpu_operator        = { chart_version = "v25.10.1" }
    namespace           = "llm"
    create_namespace    = false
    keda                = { enabled = false }
    prometheus          = { enabled = true }
    gateway_api         = { enabled = true }
    inference_extension = true
    external_secrets    = { enabled = true }
    hugging_face_token  = { remote_secret = "hf", service_account = "speculative" }
  }

  assert {
    condition     = output.versions == { cluster_autoscaler = "9.46.6", external_secrets = "0.18.2", gateway_api = "v1.5.0", gpu_operator = "v25.10.1", prometheus = "75.15.1" }
    error_message = "On EKS the cluster autoscaler comes by itself."
  }

  assert {
    condition     = output.gpu_operator.values.dcgmExporter.serviceMonitor.enabled && output.gpu_operator.values.devicePlugin.enabled && output.namespace == "llm" && output.prometheus_address == "http://prometheus-kube-prometheus-prometheus.monitoring.svc:9090" && output.token_secret == { name = "hf-token", key = "token" }
    error_message = "Everything is passed on."
  }
}

run "the_autoscaler_can_be_left_out" {
  command = plan
  variables {
    cluster = {
      cloud     = "eks"
      name      = "inference"
      location  = "us-east-1"
      host      = "https://1234.gr7.us-east-1.eks.amazonaws.com"
      gpu_stack = "operator"
    }
    cluster_autoscaler = { enabled = false }
    gpu_operator       = { install = false }
  }

  assert {
    condition     = output.versions == { keda = "2.17.2" }
    error_message = "KEDA alone."
  }
}

run "refuses_a_state_without_a_cluster" {
  command = plan
  variables {
    cluster_state = { backend = "local", config = { path = "cluster.tfstate" } }
  }
  override_data {
    target = data.terraform_remote_state.cluster
    values = {
      outputs = {}
    }
  }
  expect_failures = [data.terraform_remote_state.cluster]
}

run "refuses_no_cluster_at_all" {
  command         = plan
  expect_failures = [var.cluster]
}

run "refuses_an_unknown_backend" {
  command = plan
  variables {
    cluster_state = { backend = "http", config = {} }
  }
  expect_failures = [var.cluster_state]
}
