{{/* Refuses what KServe does by itself, or would undo. Arguments: dict root, engines. */}}
{{- define "vllm-speculative.checkKserve" -}}
{{- $values := .root.Values -}}
{{- $kserve := $values.kserve -}}
{{- if $kserve.enabled -}}
{{- range $path, $on := dict "traffic.ingress" $values.traffic.ingress.enabled "traffic.gateway" $values.traffic.gateway.enabled "traffic.inferencePool" $values.traffic.inferencePool.enabled -}}
{{- if $on -}}
{{- include "vllm-speculative.fail" (list "SD580" (printf "%s.enabled" $path) "kserve.enabled is set too, and KServe makes the routes to its engines" (printf "%s.enabled false" $path)) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $kserve.kind "LLMInferenceService") $kserve.llmInferenceService.scheduler (not $kserve.llmInferenceService.route) -}}
{{- include "vllm-speculative.fail" (list "SD583" "kserve.llmInferenceService.scheduler" "without a route nobody asks the endpoint picker" "route true, or scheduler false") -}}
{{- end -}}
{{- range $engine := .engines -}}
{{- if include "vllm-speculative.scaled" $engine -}}
{{- include "vllm-speculative.fail" (list "SD581" (printf "%sautoscaling.kind" $engine.path) "KServe sets the number of replicas, and would fight with another scaler" "autoscaling.kind none") -}}
{{- end -}}
{{- if eq $kserve.kind "LLMInferenceService" -}}
{{- $arguments := dict -}}
{{- include "vllm-speculative.arguments" (dict "engine" $engine "out" $arguments) -}}
{{- range $arguments.args -}}
{{- if contains "{{" . -}}
{{- include "vllm-speculative.fail" (list "SD582" (printf "%sengine.extraArgs" $engine.path) (printf "KServe would read the two braces in %s as its own template" .) "the same in a file, or kserve.kind InferenceService") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of KServe's object: those of the pods, which it hands on. Argument: engine. */}}
{{- define "vllm-speculative.kserveLabels" -}}
{{ include "vllm-speculative.labels" . }}
{{- with .root.Values.kserve.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
