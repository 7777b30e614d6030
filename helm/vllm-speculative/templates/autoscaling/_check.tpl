{{/* Refuses an autoscaler that could not work, or that another would fight. Arguments: dict engine, engines. */}}
{{- define "vllm-speculative.checkAutoscaling" -}}
{{- $engines := .engines -}}
{{- with .engine -}}
{{- $engine := . -}}
{{- $a := .v.autoscaling -}}
{{- $path := printf "%sautoscaling" .path -}}
{{- if ne $a.kind "none" -}}
{{- if gt (int64 $a.minReplicas) (int64 $a.maxReplicas) -}}
{{- include "vllm-speculative.fail" (list "SD553" (printf "%s.minReplicas" $path) (printf "%d is more than maxReplicas, %d" (int64 $a.minReplicas) (int64 $a.maxReplicas)) "minReplicas of maxReplicas at most") -}}
{{- end -}}
{{- if ne (int64 .v.engine.replicas) 1 -}}
{{- include "vllm-speculative.fail" (list "SD554" (printf "%sengine.replicas" .path) (printf "%d replicas are fixed, and %s is to choose their number" (int64 .v.engine.replicas) $a.kind) "leave engine.replicas out and set autoscaling.minReplicas, or autoscaling.kind none") -}}
{{- end -}}
{{- if and (eq $a.kind "hpa") (eq (int64 $a.minReplicas) 0) -}}
{{- include "vllm-speculative.fail" (list "SD555" (printf "%s.minReplicas" $path) "a HorizontalPodAutoscaler cannot scale to zero" "1, or autoscaling.kind keda") -}}
{{- end -}}
{{- if and (eq (int64 $a.minReplicas) 0) (not .router) -}}
{{- include "vllm-speculative.fail" (list "SD556" (printf "%s.minReplicas" $path) "without pods only the router sees requests, and this engine is not behind it: nothing would wake it" "1, or router.enabled true with this engine among router.engines") -}}
{{- end -}}
{{- if eq (int64 $a.minReplicas) 0 -}}
{{- $beside := list -}}
{{- range $engines }}{{ if and (ne .name $engine.name) (eq .router $engine.router) }}{{ $beside = append $beside .name }}{{ end }}{{ end -}}
{{- if $beside -}}
{{- include "vllm-speculative.fail" (list "SD556" (printf "%s.minReplicas" $path) (printf "the router does not tell for which engine a request came, and %s stand behind it too" (join ", " $beside)) "1, or a router of its own in router.entries") -}}
{{- end -}}
{{- end -}}
{{- if not (or $a.maxConcurrencyPerReplica $a.timePerOutputToken.seconds $a.kvCacheUsage $a.waitingRequests $a.metrics) -}}
{{- include "vllm-speculative.fail" (list "SD557" $path "no signal is left to scale on" "one of maxConcurrencyPerReplica, timePerOutputToken.seconds, kvCacheUsage and waitingRequests") -}}
{{- end -}}
{{- if and (eq $a.kind "keda") (not $a.prometheus.serverAddress) -}}
{{- include "vllm-speculative.fail" (list "SD558" (printf "%s.prometheus.serverAddress" $path) "KEDA is not told which Prometheus to ask" "its address, for example http://prometheus-operated.monitoring:9090") -}}
{{- end -}}
{{- if and $a.metrics (ne $a.kind "hpa") -}}
{{- include "vllm-speculative.fail" (list "SD559" (printf "%s.metrics" $path) "these are metrics of a HorizontalPodAutoscaler, and KEDA makes its own" "leave it out, or autoscaling.kind hpa") -}}
{{- end -}}
{{- if and (gt (int64 $a.maxReplicas) 1) (eq .v.modelCache.type "pvc") (not (has .v.modelCache.pvc.accessMode (list "ReadWriteMany" "ReadOnlyMany"))) (or .v.modelCache.pvc.existingClaim (eq .v.engine.workload "Deployment")) -}}
{{- include "vllm-speculative.fail" (list "SD460" (printf "%smodelCache.pvc.accessMode" .path) (printf "a %s claim cannot be shared by the pods that are added" .v.modelCache.pvc.accessMode) "ReadWriteMany, or engine.workload StatefulSet without existingClaim, which makes a claim for each pod") -}}
{{- end -}}
{{- $lacking := dict -}}
{{- include "vllm-speculative.signals" (dict "engine" $engine "out" $lacking) -}}
{{- range $name := $lacking.lacks -}}
{{- include "vllm-speculative.fail" (list "SD560" (printf "%s.%s" $path $name) (printf "vLLM %s exports nothing that tells it" $engine.version) "null, or vLLM 0.11.0 or later") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
