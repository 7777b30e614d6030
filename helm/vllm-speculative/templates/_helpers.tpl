{{/* Stops with an error of ours. Arguments: list of code, path of the value, what is wrong, what would be right. */}}
{{- define "vllm-speculative.fail" -}}
{{- fail (printf "%s: %s: %s. fix: %s" (index . 0) (index . 1) (index . 2) (index . 3)) -}}
{{- end -}}

{{/* Labels that select one engine's pods, and never change in the life of a release. Argument: engine. */}}
{{- define "vllm-speculative.selectorLabels" -}}
app.kubernetes.io/name: vllm-speculative
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: engine
vllm-speculative/engine: {{ .name | toYaml }}
{{- end -}}

{{/* Labels of an engine's objects. Argument: engine. */}}
{{- define "vllm-speculative.labels" -}}
{{ include "vllm-speculative.selectorLabels" . }}
app.kubernetes.io/version: {{ .version | quote }}
{{ include "vllm-speculative.releaseLabels" .root }}
helm.sh/chart: {{ include "vllm-speculative.chart" .root }}
{{- end -}}

{{/* Labels of an engine's pods: without the chart's version, whose change alone is no reason to load models again. */}}
{{- define "vllm-speculative.podLabels" -}}
{{ include "vllm-speculative.selectorLabels" . }}
app.kubernetes.io/version: {{ .version | quote }}
{{ include "vllm-speculative.releaseLabels" .root }}
{{- end -}}

{{/* Labels that every object has. Argument: root. */}}
{{- define "vllm-speculative.releaseLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: vllm-speculative
{{- end -}}

{{- define "vllm-speculative.chart" -}}
{{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* An image with the registry of the values in front. Arguments: dict root, image. */}}
{{- define "vllm-speculative.mirrored" -}}
{{- with .root.Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{- .image -}}
{{- end -}}

{{/* Image reference. Arguments: dict root, repository, tag, digest. */}}
{{- define "vllm-speculative.image" -}}
{{- with .root.Values.global.imageRegistry }}{{ . }}/{{ end -}}
{{- .repository -}}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end -}}
{{- end -}}

{{- define "vllm-speculative.imagePullSecrets" -}}
{{- with .Values.global.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: {{ int64 .Values.security.runAsUser }}
runAsGroup: {{ int64 .Values.security.runAsGroup }}
fsGroup: {{ int64 .Values.security.fsGroup }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "vllm-speculative.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* A number as people write it: Helm reads the integers of a values file as floats and would print 1e+06. */}}
{{- define "vllm-speculative.number" -}}
{{- if eq (float64 .) (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* A Kubernetes quantity as given, without the exponent of a float. */}}
{{- define "vllm-speculative.quantity" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ include "vllm-speculative.number" . }}{{ end -}}
{{- end -}}

{{/* Resources with every quantity as text. Argument: requests and limits. */}}
{{- define "vllm-speculative.quantities" -}}
{{- $resources := dict -}}
{{- range $kind, $amounts := . -}}
{{- $texts := dict -}}
{{- range $name, $amount := $amounts }}{{ $_ := set $texts $name (include "vllm-speculative.quantity" $amount) }}{{ end -}}
{{- if $texts }}{{ $_ := set $resources $kind $texts }}{{ end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* Bytes of a Kubernetes quantity ("16Gi", "500M", 1024). Arguments: list of quantity, path of the value. */}}
{{- define "vllm-speculative.bytes" -}}
{{- $text := include "vllm-speculative.quantity" (index . 0) -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if not (regexMatch "^[0-9]+([.][0-9]+)?([kMGT]|[KMGT]i)?$" $text) -}}
{{- include "vllm-speculative.fail" (list "SD451" (index . 1) (printf "%q is not a size" $text) "a number of bytes with a unit, for example 16Gi") -}}
{{- end -}}
{{- $number := regexFind "^[0-9.]+" $text -}}
{{- int64 (mulf (float64 $number) (float64 (get $units (trimPrefix $number $text)))) -}}
{{- end -}}

{{/* GPUs of one pod. Argument: engine. */}}
{{- define "vllm-speculative.gpus" -}}
{{- with .v.engine -}}
{{- mul (int64 .tensorParallelSize) (int64 .pipelineParallelSize) (int64 .dataParallelSize) -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.intOrPercent" -}}
{{- if kindIs "string" . }}{{ . | quote }}{{ else }}{{ int64 . }}{{ end -}}
{{- end -}}
