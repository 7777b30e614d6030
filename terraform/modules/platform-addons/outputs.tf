output "namespace" {
  description = "Namespace of the engines."
  value       = var.create_namespace ? kubernetes_namespace_v1.inference[0].metadata[0].name : var.namespace
}

output "versions" {
  description = "Versions of what is installed, by add-on."
  value = merge(
    { for release in helm_release.keda : "keda" => release.version },
    { for release in helm_release.prometheus : "prometheus" => release.version },
    { for release in helm_release.gateway_api : "gateway_api" => release.version },
    { for release in helm_release.external_secrets : "external_secrets" => release.version },
    { for release in helm_release.cluster_autoscaler : "cluster_autoscaler" => release.version },
  )
}

output "prometheus_address" {
  description = "Address of Prometheus in the cluster, for KEDA and the chart's autoscaling. Null: managed or yours."
  value       = var.prometheus.enabled ? "http://prometheus-kube-prometheus-prometheus.monitoring.svc:9090" : null
}

output "token_secret" {
  description = "Secret with the Hugging Face token: the chart's huggingFace.tokenSecret. Null: you make it."
  value       = try({ name = var.hugging_face_token.secret_name, key = var.hugging_face_token.secret_key }, null)
}
