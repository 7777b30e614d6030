{{/* Labels of an object for the whole release's monitoring, with those of the values. Arguments: list of root, labels. */}}
{{- define "vllm-speculative.monitorLabels" -}}
app.kubernetes.io/name: vllm-speculative
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: monitoring
{{ include "vllm-speculative.releaseLabels" (index . 0) }}
helm.sh/chart: {{ include "vllm-speculative.chart" (index . 0) }}
{{- with index . 1 }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{/*
Annotations by which a Prometheus without an operator finds a pod; empty unless asked for. What the values annotate
themselves stays theirs. Arguments: list of root, port, annotations of the values.
*/}}
{{- define "vllm-speculative.scrapeAnnotations" -}}
{{- if eq "annotations" (include "vllm-speculative.scrapeKind" (index . 0)) -}}
{{- $ours := dict "prometheus.io/scrape" "true" "prometheus.io/path" "/metrics" "prometheus.io/port" (index . 1) -}}
{{- range $key, $_ := index . 2 }}{{ $ours = omit $ours $key }}{{ end -}}
{{- with $ours }}{{ toYaml . }}{{ end -}}
{{- end -}}
{{- end -}}
