mock_provider "helm" {}
mock_provider "kubernetes" {}

variables {
  cloud    = "gke"
  cluster  = "inference"
  location = "us-central1"
  project  = "example-project"
}

run "keda_alone_by_default" {
  assert {
    condition     = helm_release.keda[0].version == "2.17.2" && yamldecode(helm_release.keda[0].values[0]).crds.additionalAnnotations["helm.sh/resource-policy"] == "keep" && helm_release.keda[0].atomic
    error_message = "KEDA, pinned; its CRDs outlive it."
  }

  assert {
    condition     = length(helm_release.prometheus) == 0 && length(helm_release.gateway_api) == 0 && length(helm_release.inference_extension) == 0 && length(helm_release.external_secrets) == 0 && length(helm_release.hugging_face_token) == 0 && length(helm_release.cluster_autoscaler) == 0
    error_message = "Nothing else unless asked for."
  }

  assert {
    condition     = output.namespace == "ai-inference" && kubernetes_namespace_v1.inference[0].metadata[0].labels["pod-security.kubernetes.io/enforce"] == "baseline"
    error_message = "The engines' namespace enforces Pod Security."
  }

  assert {
    condition     = output.versions["keda"] == "2.17.2" && length(output.versions) == 1 && output.prometheus_address == null && output.token_secret == null
    error_message = "Outputs."
  }
}

run "everything_on_eks" {
  command = plan
  variables {
    cloud               = "eks"
    location            = "us-east-1"
    project             = null
    namespace           = "llm"
    create_namespace    = false
    keda                = { version = "2.16.0" }
    prometheus          = { enabled = true, version = "76.0.0", retention = "30d", storage = "1Ti", storage_class = "gp3", with_dashboard = false }
    gateway_api         = { enabled = true, version = "v1.4.0", channel = "experimental" }
    inference_extension = true
    external_secrets    = { enabled = true, version = "0.19.0" }
    hugging_face_token  = { remote_secret = "prod/hf", service_account = "speculative", secret_name = "hf", secret_key = "value" }
    cluster_autoscaler  = { enabled = true, version = "9.50.0" }
  }

  assert {
    condition     = output.versions == { keda = "2.16.0", prometheus = "76.0.0", gateway_api = "v1.4.0", external_secrets = "0.19.0", cluster_autoscaler = "9.50.0" }
    error_message = "Every version is a choice."
  }

  assert {
    condition     = yamldecode(helm_release.prometheus[0].values[0]).prometheus.prometheusSpec.retention == "30d" && yamldecode(helm_release.prometheus[0].values[0]).prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.storageClassName == "gp3" && yamldecode(helm_release.prometheus[0].values[0]).prometheus.prometheusSpec.storageSpec.volumeClaimTemplate.spec.resources.requests.storage == "1Ti" && !yamldecode(helm_release.prometheus[0].values[0]).grafana.enabled && !yamldecode(helm_release.prometheus[0].values[0]).prometheus.prometheusSpec.podMonitorSelectorNilUsesHelmValues
    error_message = "Prometheus reads every release's monitors and keeps what it was told to keep."
  }

  assert {
    condition     = yamldecode(helm_release.gateway_api[0].values[0]).crds.gatewayAPI.channel == "experimental" && !yamldecode(helm_release.gateway_api[0].values[0]).crds.envoyGateway.enabled && length(helm_release.inference_extension) == 1
    error_message = "CRDs of the Gateway API and the inference extension."
  }

  assert {
    condition     = yamldecode(helm_release.hugging_face_token[0].values[0]).provider.aws.region == "us-east-1" && yamldecode(helm_release.hugging_face_token[0].values[0]).provider.aws.auth.jwt.serviceAccountRef.name == "speculative" && yamldecode(helm_release.hugging_face_token[0].values[0]).remoteSecret == "prod/hf" && helm_release.hugging_face_token[0].namespace == "llm"
    error_message = "The token comes from Secrets Manager."
  }

  assert {
    condition     = yamldecode(helm_release.cluster_autoscaler[0].values[0]).autoDiscovery.clusterName == "inference" && yamldecode(helm_release.cluster_autoscaler[0].values[0]).awsRegion == "us-east-1" && yamldecode(helm_release.cluster_autoscaler[0].values[0]).rbac.serviceAccount.name == "cluster-autoscaler"
    error_message = "The autoscaler finds the cluster's node groups."
  }

  assert {
    condition     = output.namespace == "llm" && length(kubernetes_namespace_v1.inference) == 0 && output.prometheus_address == "http://prometheus-kube-prometheus-prometheus.monitoring.svc:9090" && output.token_secret == { name = "hf", key = "value" }
    error_message = "Outputs."
  }
}

run "the_token_comes_from_secret_manager_on_gke" {
  command = plan
  variables {
    keda               = { enabled = false }
    managed_prometheus = true
    hugging_face_token = { remote_secret = "hf-token", service_account = "speculative" }
  }

  assert {
    condition     = yamldecode(helm_release.hugging_face_token[0].values[0]).provider.gcpsm.projectID == "example-project" && yamldecode(helm_release.hugging_face_token[0].values[0]).provider.gcpsm.auth.workloadIdentity.clusterLocation == "us-central1" && yamldecode(helm_release.hugging_face_token[0].values[0]).provider.gcpsm.auth.workloadIdentity.clusterName == "inference" && yamldecode(helm_release.hugging_face_token[0].values[0]).secretName == "hf-token"
    error_message = "Through Workload Identity."
  }

  assert {
    condition     = length(helm_release.keda) == 0 && length(output.versions) == 0
    error_message = "KEDA can be yours."
  }
}

run "refuses_another_cloud" {
  command = plan
  variables {
    cloud = "aks"
  }
  expect_failures = [var.cloud]
}

run "refuses_gke_without_a_project" {
  command = plan
  variables {
    project = null
  }
  expect_failures = [var.project]
}

run "refuses_two_collectors" {
  command = plan
  variables {
    managed_prometheus = true
    prometheus         = { enabled = true }
  }
  expect_failures = [helm_release.prometheus]
}

run "refuses_a_keda_that_moves" {
  command = plan
  variables {
    keda = { version = ">= 2.0.0" }
  }
  expect_failures = [var.keda]
}

run "refuses_a_prometheus_that_moves" {
  command = plan
  variables {
    prometheus = { version = "latest" }
  }
  expect_failures = [var.prometheus]
}

run "refuses_a_retention_without_a_unit" {
  command = plan
  variables {
    prometheus = { retention = "15" }
  }
  expect_failures = [var.prometheus]
}

run "refuses_a_second_owner_of_the_gateway_api" {
  command = plan
  variables {
    gateway_api = { enabled = true }
  }
  expect_failures = [var.gateway_api]
}

run "refuses_an_unknown_gateway_channel" {
  command = plan
  variables {
    gateway_api = { channel = "beta" }
  }
  expect_failures = [var.gateway_api]
}

run "refuses_external_secrets_that_move" {
  command = plan
  variables {
    external_secrets = { version = "*" }
  }
  expect_failures = [var.external_secrets]
}

run "refuses_a_token_where_its_name_belongs" {
  command = plan
  variables {
    hugging_face_token = { remote_secret = "hf_abcdefghijklmnopqrstuvwxyz", service_account = "speculative" }
  }
  expect_failures = [var.hugging_face_token]
}

run "refuses_a_second_autoscaler" {
  command = plan
  variables {
    cluster_autoscaler = { enabled = true }
  }
  expect_failures = [var.cluster_autoscaler]
}

run "refuses_an_autoscaler_that_moves" {
  command = plan
  variables {
    cluster_autoscaler = { version = "9" }
  }
  expect_failures = [var.cluster_autoscaler]
}
