locals {
  # Everything that must outlive a release because objects of others depend on it.
  keep = { "helm.sh/resource-policy" = "keep" }

  secret_provider = var.hugging_face_token == null ? {} : {
    gke = {
      gcpsm = {
        projectID = var.project
        auth = {
          workloadIdentity = {
            clusterLocation  = var.location
            clusterName      = var.cluster
            clusterProjectID = var.project
            serviceAccountRef = {
              name = var.hugging_face_token.service_account
            }
          }
        }
      }
    }
    eks = {
      aws = {
        service = "SecretsManager"
        region  = var.location
        auth = {
          jwt = {
            serviceAccountRef = {
              name = var.hugging_face_token.service_account
            }
          }
        }
      }
    }
  }[var.cloud]
}

resource "kubernetes_namespace_v1" "inference" {
  count = var.create_namespace ? 1 : 0

  metadata {
    name = var.namespace
    labels = {
      "pod-security.kubernetes.io/enforce" = "baseline"
      "pod-security.kubernetes.io/warn"    = "restricted"
    }
  }
}

# ScaledObjects carry a finalizer that only KEDA removes. Its CRDs therefore stay when the release goes: deleting them would
# wait for ever on ScaledObjects that nobody finalizes any more.
resource "helm_release" "keda" {
  count = var.keda.enabled ? 1 : 0

  name             = "keda"
  namespace        = "keda"
  create_namespace = true
  repository       = "https://kedacore.github.io/charts"
  chart            = "keda"
  version          = var.keda.version
  atomic           = true
  timeout          = 600

  values = [yamlencode({
    crds = { install = true, additionalAnnotations = local.keep }
  })]

  # Scalers ask Prometheus: it comes first and goes last.
  depends_on = [helm_release.prometheus]
}

resource "helm_release" "prometheus" {
  count = var.prometheus.enabled ? 1 : 0

  name             = "prometheus"
  namespace        = "monitoring"
  create_namespace = true
  repository       = "https://prometheus-community.github.io/helm-charts"
  chart            = "kube-prometheus-stack"
  version          = var.prometheus.version
  atomic           = true
  timeout          = 900

  values = [yamlencode({
    grafana = {
      enabled = var.prometheus.with_dashboard
      # Dashboards come as ConfigMaps of the chart, in any namespace.
      sidecar = { dashboards = { enabled = true, searchNamespace = "ALL" } }
    }
    prometheus = {
      prometheusSpec = {
        retention = var.prometheus.retention
        # Monitors and rules of every release, not only of this one.
        podMonitorSelectorNilUsesHelmValues     = false
        serviceMonitorSelectorNilUsesHelmValues = false
        ruleSelectorNilUsesHelmValues           = false
        storageSpec = {
          volumeClaimTemplate = {
            spec = merge(
              { accessModes = ["ReadWriteOnce"], resources = { requests = { storage = var.prometheus.storage } } },
              var.prometheus.storage_class == null ? {} : { storageClassName = var.prometheus.storage_class },
            )
          }
        }
      }
    }
  })]

  lifecycle {
    precondition {
      condition     = !var.managed_prometheus
      error_message = "Managed collection and a Prometheus in the cluster would scrape everything twice: choose one."
    }
  }
}

resource "helm_release" "gateway_api" {
  count = var.gateway_api.enabled ? 1 : 0

  name             = "gateway-api-crds"
  namespace        = "gateway-system"
  create_namespace = true
  repository       = "oci://docker.io/envoyproxy"
  chart            = "gateway-crds-helm"
  version          = var.gateway_api.version

  values = [yamlencode({
    crds = {
      gatewayAPI   = { enabled = true, channel = var.gateway_api.channel }
      envoyGateway = { enabled = false }
    }
  })]
}

resource "helm_release" "inference_extension" {
  count = var.inference_extension ? 1 : 0

  name             = "inference-extension-crds"
  namespace        = "gateway-system"
  create_namespace = true
  chart            = "${path.module}/charts/inference-extension-crds"

  depends_on = [helm_release.gateway_api]
}

resource "helm_release" "external_secrets" {
  count = var.external_secrets.enabled ? 1 : 0

  name             = "external-secrets"
  namespace        = "external-secrets"
  create_namespace = true
  repository       = "https://charts.external-secrets.io"
  chart            = "external-secrets"
  version          = var.external_secrets.version
  atomic           = true
  timeout          = 600

  values = [yamlencode({
    installCRDs = true
  })]
}

resource "helm_release" "hugging_face_token" {
  count = var.hugging_face_token == null ? 0 : 1

  name      = "hugging-face-token"
  namespace = var.create_namespace ? kubernetes_namespace_v1.inference[0].metadata[0].name : var.namespace
  chart     = "${path.module}/charts/hugging-face-token"

  values = [yamlencode({
    provider     = local.secret_provider
    remoteSecret = var.hugging_face_token.remote_secret
    secretName   = var.hugging_face_token.secret_name
    secretKey    = var.hugging_face_token.secret_key
  })]

  # Its ExternalSecret needs the CRDs, and the controller to clean up after it.
  depends_on = [helm_release.external_secrets]
}

resource "helm_release" "cluster_autoscaler" {
  count = var.cluster_autoscaler.enabled ? 1 : 0

  name       = "cluster-autoscaler"
  namespace  = "kube-system"
  repository = "https://kubernetes.github.io/autoscaler"
  chart      = "cluster-autoscaler"
  version    = var.cluster_autoscaler.version
  atomic     = true
  timeout    = 600

  values = [yamlencode({
    cloudProvider = "aws"
    awsRegion     = var.location
    autoDiscovery = { clusterName = var.cluster }
    # The account that eks-cluster lets scale node groups.
    rbac      = { serviceAccount = { name = "cluster-autoscaler" } }
    extraArgs = { balance-similar-node-groups = true, skip-nodes-with-local-storage = false }
  })]
}
