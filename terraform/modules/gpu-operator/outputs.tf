output "namespace" {
  description = "Namespace of the operator. Null where it is not installed."
  value       = one(kubernetes_namespace_v1.this[*].metadata[0].name)
}

output "chart_version" {
  description = "Version of the operator that is installed. Null where it is not."
  value       = one(helm_release.gpu_operator[*].version)
}

output "values" {
  description = "Values that the operator's chart gets."
  value       = local.values
}
