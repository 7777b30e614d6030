{{/*
Metrics of an engine by role, from files/metrics.yaml for its version and core; those that are hidden by default are not
there. Arguments: dict engine, out. Sets out.metrics, a dict of role to {name, type}.
*/}}
{{- define "vllm-speculative.metrics" -}}
{{- $engine := .engine -}}
{{- $core := ternary "v0" "v1" (eq "v0" (include "vllm-speculative.runner" $engine)) -}}
{{- $metrics := dict "up" (dict "name" "up" "type" "gauge") -}}
{{- range (.engine.root.Files.Get "files/metrics.yaml" | fromYaml).metrics -}}
{{- if and .role (eq .core $core) (not .hidden) (ne "" (include "vllm-speculative.row" (list (list .) $engine.version))) -}}
{{- $_ := set $metrics .role (dict "name" .name "type" .type) -}}
{{- end -}}
{{- end -}}
{{- $_ := set .out "metrics" $metrics -}}
{{- end -}}

{{/*
Labels that select the scraped series of an engine's pods. They are the pods' own labels as Prometheus spells them, which
the monitors here and the usual label maps for annotations both carry over. Argument: engine.
*/}}
{{- define "vllm-speculative.seriesSelector" -}}
namespace={{ .root.Release.Namespace | quote }}, app_kubernetes_io_instance={{ .root.Release.Name | quote }}, vllm_speculative_engine={{ .name | quote }}
{{- end -}}

{{/*
Names of the engine's pods as a regular expression, for kube-state-metrics: of a StatefulSet, or of a Deployment, which KServe
calls by other names. Argument: engine.
*/}}
{{- define "vllm-speculative.podSelector" -}}
{{- $kserve := .root.Values.kserve -}}
{{- $name := .fullname -}}
{{- if $kserve.enabled }}{{ $name = printf "%s-%s" .fullname (ternary "predictor" "kserve" (eq $kserve.kind "InferenceService")) }}{{ end -}}
{{- $single := and (not $kserve.enabled) (eq .v.engine.workload "StatefulSet") -}}
namespace={{ .root.Release.Namespace | quote }}, pod=~"{{ $name | replace "." "[.]" }}-{{ ternary "[0-9]+" "[a-z0-9]+-[a-z0-9]{5}" $single }}"
{{- end -}}

{{/* Name of the engine's container. Argument: engine. */}}
{{- define "vllm-speculative.engineContainer" -}}
{{- with .root.Values.kserve -}}
{{- if not .enabled }}engine{{ else if eq .kind "InferenceService" }}kserve-container{{ else }}main{{ end -}}
{{- end -}}
{{- end -}}

{{/* The engine's name without the mark of its baseline: both arms have one name. Argument: engine. */}}
{{- define "vllm-speculative.engineLabel" -}}
{{ ternary (trimSuffix "-baseline" .name) .name .baseline }}
{{- end -}}

{{/* Labels that select the recorded series. Arguments: list of engine, arm. */}}
{{- define "vllm-speculative.recordedSelector" -}}
{{- with index . 0 -}}
namespace={{ .root.Release.Namespace | quote }}, release={{ .root.Release.Name | quote }}, engine={{ include "vllm-speculative.engineLabel" . | quote }}
{{- end -}}, arm={{ index . 1 | quote }}
{{- end -}}

{{/*
A text in the notation of rules/recording.yaml with <role> and @name@ filled in; what the engine's version lacks stays.
Arguments: dict engine, metrics, parameters, text.
*/}}
{{- define "vllm-speculative.promql" -}}
{{- $text := .text -}}
{{- $selector := include "vllm-speculative.seriesSelector" .engine -}}
{{- range $role, $metric := .metrics -}}
{{- if contains (printf "<%s" $role) $text -}}
{{- if eq $metric.type "histogram" -}}
{{- $text = regexReplaceAll (printf "<%s(_bucket|_sum|_count)((?:, [^<>]*)?)>" $role) $text (printf "%s${1}{%s${2}}" $metric.name $selector) -}}
{{- else -}}
{{- $text = regexReplaceAll (printf "<%s((?:, [^<>]*)?)>" $role) $text (printf "%s{%s${1}}" $metric.name $selector) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .parameters }}{{ $text = replace (printf "@%s@" $name) (toString $value) $text }}{{ end -}}
{{- $text -}}
{{- end -}}

{{/* Whether a filled-in text still asks for what the engine lacks: not empty then. Argument: text. */}}
{{- define "vllm-speculative.promqlLacks" -}}
{{- if regexMatch "<[a-zA-Z_]+(, [^<>]*)?>|@[a-z_]+@" . }}lacks{{ end -}}
{{- end -}}
