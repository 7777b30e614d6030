{{/* What NOTES.txt says of monitoring and autoscaling. Arguments: dict root, release. */}}
{{- define "vllm-speculative.watchNotes" -}}
{{- $root := .root -}}
{{- $m := .root.Values.monitoring -}}
{{- $scrape := include "vllm-speculative.scrapeKind" $root -}}
{{- $rules := include "vllm-speculative.rulesKind" $root -}}
{{- $words := dict "podMonitor" "PodMonitors for the Prometheus operator" "podMonitoring" "PodMonitorings for Google Cloud" "annotations" "prometheus.io annotations on the pods" "none" "not asked for" "prometheusRule" "PrometheusRules for the Prometheus operator" "googleRules" "Rules for Google Cloud" "configMap" (printf "files in the ConfigMap %s-rules, for a Prometheus to mount" $root.Release.Name) -}}
Metrics:
  scraped by   {{ if eq $scrape "missing" }}nothing: monitoring.scrape.kind is {{ $m.scrape.kind }}, and the cluster has no such API. Install it, then upgrade{{ else if and (eq $scrape "none") (eq $m.scrape.kind "auto") }}nothing: the cluster has neither PodMonitor nor PodMonitoring. monitoring.scrape.kind annotations works without{{ else }}{{ get $words $scrape }}{{ end }}
  rules        {{ if eq $rules "missing" }}none: monitoring.rules.kind is {{ $m.rules.kind }}, and the cluster has no such API. Install it, then upgrade{{ else if and (eq $rules "none") (eq $m.rules.kind "auto") }}none: the cluster has neither PrometheusRule nor Rules. monitoring.rules.kind configMap works without{{ else }}{{ get $words $rules }}{{ end }}
{{- if $m.dashboards.enabled }}
  dashboards   in ConfigMaps for Grafana's sidecar
{{- end }}
{{- range $engine := .release.engines }}
{{- $a := $engine.v.autoscaling }}
{{- if ne $a.kind "none" }}
{{- $found := dict }}
{{- include "vllm-speculative.signals" (dict "engine" $engine "out" $found) }}
{{- $names := list }}
{{- range $found.signals }}{{ $names = append $names .name }}{{ end }}
  {{ $engine.fullname }}: {{ int64 $a.minReplicas }} to {{ int64 $a.maxReplicas }} pods by {{ $a.kind }} on {{ if $a.metrics }}metrics of its own{{ else }}{{ join ", " $names }}{{ end }}
{{- if eq $a.kind "keda" }}
    kubectl -n {{ $root.Release.Namespace }} describe scaledobject {{ $engine.fullname }}
{{- else }}
    kubectl -n {{ $root.Release.Namespace }} describe hpa {{ $engine.fullname }}{{ if not $a.metrics }} (docs/autoscaling.md says what the adapter needs){{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
