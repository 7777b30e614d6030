output "namespace" {
  description = "Namespace of the engines."
  value       = module.addons.namespace
}

output "versions" {
  description = "Versions of what is installed, by add-on."
  value = merge(
    module.addons.versions,
    module.gpu_operator.chart_version == null ? {} : { gpu_operator = module.gpu_operator.chart_version },
  )
}

output "gpu_operator" {
  description = "The operator's namespace and the values that its chart got."
  value = {
    namespace = module.gpu_operator.namespace
    values    = module.gpu_operator.values
  }
}

output "prometheus_address" {
  description = "Address of Prometheus in the cluster, for the chart's autoscaling."
  value       = module.addons.prometheus_address
}

output "token_secret" {
  description = "Secret with the Hugging Face token, for the chart's huggingFace.tokenSecret."
  value       = module.addons.token_secret
}
