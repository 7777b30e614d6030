{{/*
Seconds that an engine may take until it answers: bytes of target and draft over the speed of the cache (and of the
download, where the engine fetches them itself), imports, compilation and CUDA graphs, times a safety factor.
A model of unknown size is taken to fill the accelerators. Argument: engine.
*/}}
{{- define "vllm-speculative.startupSeconds" -}}
{{- $startup := .v.probes.startup -}}
{{- if $startup.budgetSeconds -}}
{{- int64 $startup.budgetSeconds -}}
{{- else -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" . "out" $models) -}}
{{- $bytes := include "vllm-speculative.modelBytes" . | float64 -}}
{{- $seconds := addf (divf $bytes (mulf (float64 .v.modelCache.readMBps) 1e6)) (float64 $startup.bootSeconds) -}}
{{- if $models.remote }}{{ $seconds = addf $seconds (divf $bytes (mulf (float64 .v.modelCache.downloadMBps) 1e6)) }}{{ end -}}
{{- if not .v.engine.enforceEager }}{{ $seconds = addf $seconds (float64 $startup.compileSeconds) }}{{ end -}}
{{- mulf $seconds (float64 $startup.safetyFactor) | ceil | int64 -}}
{{- end -}}
{{- end -}}

{{/* Bytes of the checkpoints that an engine loads. Argument: engine. */}}
{{- define "vllm-speculative.modelBytes" -}}
{{- $engine := . -}}
{{- $known := default dict .facts.models.models -}}
{{- $loaded := list .v.engine.model -}}
{{- if and .v.speculative.enabled .v.speculative.model.name }}{{ $loaded = append $loaded .v.speculative.model }}{{ end -}}
{{- $bytes := 0.0 -}}
{{- $unknown := false -}}
{{- range $model := $loaded -}}
{{- if $model.sizeGiB -}}
{{- $bytes = addf $bytes (mulf (float64 $model.sizeGiB) 1073741824.0) -}}
{{- else if hasKey $known $model.name -}}
{{- $bytes = addf $bytes (float64 (get $known $model.name).checkpointBytes) -}}
{{- else -}}
{{- $unknown = true -}}
{{- end -}}
{{- end -}}
{{- if $unknown -}}
{{- if eq .v.accelerator.type "cpu" -}}
{{- $bytes = include "vllm-speculative.memoryLimit" . | float64 -}}
{{- else -}}
{{- $bytes = mulf (float64 (get .facts.accelerators.accelerators .v.accelerator.type).memoryGiB) 1073741824.0 (include "vllm-speculative.gpus" . | float64) -}}
{{- end -}}
{{- end -}}
{{- int64 $bytes -}}
{{- end -}}

{{/* Start-up, liveness and readiness. Liveness asks only once start-up has passed. Argument: engine. */}}
{{- define "vllm-speculative.probes" -}}
{{- $p := .v.probes -}}
{{- $period := int64 $p.startup.periodSeconds -}}
startupProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: {{ $period }}
  timeoutSeconds: {{ int64 $p.startup.timeoutSeconds }}
  failureThreshold: {{ divf (include "vllm-speculative.startupSeconds" . | float64) (float64 $period) | ceil | int64 }}
livenessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: {{ int64 $p.liveness.periodSeconds }}
  timeoutSeconds: {{ int64 $p.liveness.timeoutSeconds }}
  failureThreshold: {{ int64 $p.liveness.failureThreshold }}
readinessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: {{ int64 $p.readiness.periodSeconds }}
  timeoutSeconds: {{ int64 $p.readiness.timeoutSeconds }}
  failureThreshold: {{ int64 $p.readiness.failureThreshold }}
{{- end -}}
