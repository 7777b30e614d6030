{{/*
The signals that an engine is scaled on, with the queries of rules/scaling.yaml. Arguments: dict engine, out.
Sets out.signals, a list of {name, query, target, activation}; out.lacks, wanted signals that the version cannot give.
*/}}
{{- define "vllm-speculative.signals" -}}
{{- $engine := .engine -}}
{{- $a := .engine.v.autoscaling -}}
{{- $found := dict -}}
{{- include "vllm-speculative.metrics" (dict "engine" $engine "out" $found) -}}
{{- $router := printf "namespace=%q, pod=~\"%s-[a-z0-9]+-[a-z0-9]{5}\"" $engine.root.Release.Namespace ($engine.router | replace "." "[.]") -}}
{{- $parameters := dict "min_running" (int64 $a.timePerOutputToken.minRunning) "router" $router -}}
{{- $text := include "vllm-speculative.promql" (dict "engine" $engine "metrics" $found.metrics "parameters" $parameters "text" ($engine.root.Files.Get "rules/scaling.yaml")) -}}
{{- $queries := ($text | fromYaml).signals -}}
{{- $wanted := list
  (dict "name" "concurrency" "value" "maxConcurrencyPerReplica" "target" $a.maxConcurrencyPerReplica)
  (dict "name" "kvCacheUsage" "value" "kvCacheUsage" "target" $a.kvCacheUsage)
  (dict "name" "timePerOutputToken" "value" "timePerOutputToken.seconds" "target" $a.timePerOutputToken.seconds)
  (dict "name" "waitingRequests" "value" "waitingRequests" "target" $a.waitingRequests)
-}}
{{- if eq (int64 $a.minReplicas) 0 -}}
{{- $wanted = append $wanted (dict "name" "routerRequests" "value" "minReplicas" "target" 1) -}}
{{- end -}}
{{- $signals := list -}}
{{- $lacks := list -}}
{{- range $wanted -}}
{{- if .target -}}
{{- $query := (get $queries .name).expr -}}
{{- if include "vllm-speculative.promqlLacks" $query -}}
{{- $lacks = append $lacks .value -}}
{{- else -}}
{{- $signals = append $signals (dict "name" .name "query" $query "target" .target) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set .out "signals" $signals -}}
{{- $_ := set .out "lacks" $lacks -}}
{{- end -}}

{{/*
Recorded series of the signals, which an adapter serves to a HorizontalPodAutoscaler, as JSON; none for others.
Arguments: dict engine, labels, metrics.
*/}}
{{- define "vllm-speculative.scalingRecords" -}}
{{- $labels := .labels -}}
{{- $records := list -}}
{{- if eq .engine.v.autoscaling.kind "hpa" -}}
{{- $found := dict -}}
{{- include "vllm-speculative.signals" (dict "engine" .engine "out" $found) -}}
{{- range $found.signals -}}
{{- $records = append $records (dict "record" (printf "vllm_speculative:scaling:%s" (snakecase .name)) "expr" .query "labels" $labels) -}}
{{- end -}}
{{- end -}}
{{- toJson $records -}}
{{- end -}}

{{/* Seconds in which a pod starts, held between a least and a most. Arguments: list of engine, least, most. */}}
{{- define "vllm-speculative.loadSeconds" -}}
{{- min (index . 2) (max (index . 1) (include "vllm-speculative.progressSeconds" (index . 0) | int64)) -}}
{{- end -}}

{{/*
How fast replicas change: at most twice as many in the time that a pod takes to start, one pod less a minute, and fewer only
after the time that it would take to have them back. Argument: engine.
*/}}
{{- define "vllm-speculative.scalingBehavior" -}}
{{- $a := .v.autoscaling -}}
{{- if $a.behavior -}}
{{- toYaml $a.behavior -}}
{{- else -}}
scaleUp:
  stabilizationWindowSeconds: 0
  policies:
    - {type: Percent, value: 100, periodSeconds: {{ include "vllm-speculative.loadSeconds" (list . 15 1800) }}}
scaleDown:
  stabilizationWindowSeconds: {{ if kindIs "invalid" $a.scaleDownAfterSeconds }}{{ include "vllm-speculative.loadSeconds" (list . 300 3600) }}{{ else }}{{ int64 $a.scaleDownAfterSeconds }}{{ end }}
  policies:
    - {type: Pods, value: 1, periodSeconds: 60}
{{- end -}}
{{- end -}}

{{/* Whether something else chooses the number of replicas: not empty then. Argument: engine. */}}
{{- define "vllm-speculative.scaled" -}}
{{- if ne .v.autoscaling.kind "none" }}scaled{{ end -}}
{{- end -}}
