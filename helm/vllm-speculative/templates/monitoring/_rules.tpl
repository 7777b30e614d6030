{{/*
Recording rules and alerts of an engine, from rules/. Arguments: dict engine, engines (all of the release), out.
Sets out.groups, groups as Prometheus has them.
*/}}
{{- define "vllm-speculative.rules" -}}
{{- $engine := .engine -}}
{{- $m := $engine.root.Values.monitoring -}}
{{- $arm := ternary "speculative" "baseline" $engine.v.speculative.enabled -}}
{{- $labels := dict "namespace" $engine.root.Release.Namespace "release" $engine.root.Release.Name "engine" (include "vllm-speculative.engineLabel" $engine) "arm" $arm -}}
{{- $found := dict -}}
{{- include "vllm-speculative.metrics" (dict "engine" $engine "out" $found) -}}
{{- include "vllm-speculative.ruleParameters" (dict "engine" $engine "engines" .engines "metrics" $found.metrics "out" $found) -}}
{{- $groups := list -}}
{{- $recorded := list -}}
{{- $files := list "recording" -}}
{{- if $m.alerts.enabled }}{{ $files = append $files "alerts" }}{{ end -}}
{{- range $file := $files -}}
{{- $text := $engine.root.Files.Get (printf "rules/%s.yaml" $file) -}}
{{- range $group := (include "vllm-speculative.promql" (dict "engine" $engine "metrics" $found.metrics "parameters" $found.parameters "text" $text) | fromYaml).groups -}}
{{- $rules := list -}}
{{- range $rule := $group.rules -}}
{{- $holds := not (has $rule.alert $m.alerts.disabled) -}}
{{- range $flag := $rule.when }}{{ if not (get $found.flags $flag) }}{{ $holds = false }}{{ end }}{{ end -}}
{{- $expr := $rule.expr -}}
{{- range $name, $values := $rule.each }}{{ $expr = replace (printf "@%s@" $name) (first $values) $expr }}{{ end -}}
{{- if include "vllm-speculative.promqlLacks" $expr -}}
{{- $expr = default "" $rule.otherwise -}}
{{- if or (not $expr) (include "vllm-speculative.promqlLacks" $expr) }}{{ $holds = false }}{{ end -}}
{{- else -}}
{{- $expr = $rule.expr -}}
{{- end -}}
{{- range $name := regexFindAll "vllm_speculative:[a-z0-9_:]+" $expr -1 -}}
{{- if not (has $name $recorded) }}{{ $holds = false }}{{ end -}}
{{- end -}}
{{- if $holds -}}
{{- $made := omit $rule "when" "each" "otherwise" -}}
{{- $_ := set $made "expr" $expr -}}
{{- if $rule.alert -}}
{{- $_ := set $made "labels" (merge (dict) (default dict $rule.labels) $labels $m.alerts.labels) -}}
{{- if has "speculative" $rule.when }}{{ $_ := set $made "labels" (merge $made.labels (dict "method" $engine.v.speculative.method)) }}{{ end -}}
{{- $_ := set $made "annotations" (merge (dict "runbook_url" (printf "%s/%s.md" (trimSuffix "/" $m.alerts.runbookUrl) $rule.alert)) $rule.annotations) -}}
{{- $rules = append $rules $made -}}
{{- else -}}
{{- $_ := set $made "labels" (merge (dict) (default dict $rule.labels) $labels) -}}
{{- range $name, $values := default (dict "" (list "")) $rule.each -}}
{{- range $value := $values -}}
{{- $one := $made | toJson | replace (printf "@%s@" $name) $value | fromJson -}}
{{- $rules = append $rules $one -}}
{{- $recorded = append $recorded $one.record -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}
{{- $groups = append $groups (dict "name" (printf "%s.%s" $engine.fullname $group.name) "interval" $m.rules.interval "rules" $rules) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "vllm-speculative.scalingRecords" (dict "engine" $engine "labels" $labels "metrics" $found.metrics) | fromJsonArray -}}
{{- $groups = append $groups (dict "name" (printf "%s.scaling" $engine.fullname) "interval" $m.rules.interval "rules" .) -}}
{{- end -}}
{{- $_ := set .out "groups" $groups -}}
{{- end -}}

{{/* What stands between @ in the rules, and the conditions of `when`. Arguments: dict engine, engines, metrics, out. */}}
{{- define "vllm-speculative.ruleParameters" -}}
{{- $engine := .engine -}}
{{- $s := .engine.v.speculative -}}
{{- $a := .engine.root.Values.monitoring.alerts -}}
{{- $startup := include "vllm-speculative.progressSeconds" $engine | int64 -}}
{{- $least := $a.acceptance.min -}}
{{- range reverse $a.acceptance.overrides -}}
{{- if and (or (not .method) (eq .method $s.method)) (or (not .numTokens) (eq (int64 .numTokens) (int64 (default 0 $s.numTokens)))) }}{{ $least = .min }}{{ end -}}
{{- end -}}
{{- $depth := int64 (default 0 $s.numTokens) -}}
{{- $until := "+Inf" -}}
{{- range $s.schedule -}}
{{- if eq (int64 .tokens) 0 -}}
{{- if eq $until "+Inf" }}{{ $until = toString (int64 .from) }}{{ end -}}
{{- else -}}
{{- $depth = min $depth (int64 .tokens) -}}
{{- end -}}
{{- end -}}
{{- $parameters := dict
  "engine" (include "vllm-speculative.recordedSelector" (list $engine (ternary "speculative" "baseline" $s.enabled)))
  "baseline" (include "vllm-speculative.recordedSelector" (list $engine "baseline"))
  "pods" (include "vllm-speculative.podSelector" $engine)
  "container" (include "vllm-speculative.engineContainer" $engine)
  "release" $engine.root.Release.Name
  "name" (include "vllm-speculative.engineLabel" $engine)
  "method" $s.method
  "acceptance_min" (include "vllm-speculative.number" $least)
  "min_drafts" (include "vllm-speculative.number" $a.acceptance.minDraftsPerSecond)
  "last_position_min" (include "vllm-speculative.number" $a.lastPositionMin)
  "drafts_until" $until
  "time_per_output_token_seconds" (include "vllm-speculative.number" $a.timePerOutputToken.seconds)
  "time_per_output_token_le" (include "vllm-speculative.bucket" $a.timePerOutputToken.seconds)
  "time_per_output_token_objective" (include "vllm-speculative.number" $a.timePerOutputToken.objective)
  "time_to_first_token_seconds" (include "vllm-speculative.number" $a.timeToFirstToken.seconds)
  "time_to_first_token_le" (include "vllm-speculative.bucket" $a.timeToFirstToken.seconds)
  "time_to_first_token_objective" (include "vllm-speculative.number" $a.timeToFirstToken.objective)
  "min_requests" (include "vllm-speculative.number" $a.minRequests)
  "kv_cache_usage_max" (include "vllm-speculative.number" $a.kvCacheUsageMax)
  "preemptions_max" (include "vllm-speculative.number" $a.preemptionsPerSecondMax)
  "waiting_max" (include "vllm-speculative.number" $a.waitingRequestsMax)
  "restarts_max" (include "vllm-speculative.number" $a.restartsPerHour)
  "startup_seconds" $startup
  "missing_for" (add $startup 300)
  "node_expires_after" (sub 604800 (mul 3600 (int64 $a.flexStartHours)))
-}}
{{- if $s.numTokens -}}
{{- $_ := set $parameters "num_tokens" (int64 $s.numTokens) -}}
{{- $_ := set $parameters "last_position" (sub $depth 1) -}}
{{- end -}}
{{- $scaling := $engine.v.autoscaling -}}
{{- with $scaling.maxConcurrencyPerReplica }}{{ $_ := set $parameters "crossover" (int64 .) }}{{ end -}}
{{- $twin := false -}}
{{- range .engines }}{{ if and .baseline (eq .name (printf "%s-baseline" $engine.name)) }}{{ $twin = true }}{{ end }}{{ end -}}
{{- $core := ternary "coreV0" "coreV1" (eq "v0" (include "vllm-speculative.runner" $engine)) -}}
{{- $_ := set .out "parameters" $parameters -}}
{{- $_ := set .out "flags" (dict
  "speculative" $s.enabled
  "hasBaseline" $twin
  "hasCrossover" (not (empty $scaling.maxConcurrencyPerReplica))
  "everPresent" (gt (ternary $engine.v.engine.replicas $scaling.minReplicas (eq $scaling.kind "none") | int64) 0)
  "kubeStateMetrics" $a.kubeStateMetrics
  "flexStart" (eq "true" (toString (get $engine.v.engine.nodeSelector "cloud.google.com/gke-flex-start")))
  $core true
) -}}
{{- end -}}

{{/* A bucket's bound as a regular expression: some Prometheus write 1, others 1.0. Argument: seconds. */}}
{{- define "vllm-speculative.bucket" -}}
{{- $text := include "vllm-speculative.number" . -}}
{{- if contains "." $text }}{{ replace "." "[.]" $text }}{{ else }}{{ $text }}([.]0)?{{ end -}}
{{- end -}}

{{/* The groups as YAML. Arguments: dict engine, engines. */}}
{{- define "vllm-speculative.ruleGroups" -}}
{{- $made := dict -}}
{{- include "vllm-speculative.rules" (dict "engine" .engine "engines" .engines "out" $made) -}}
groups:
  {{- toYaml $made.groups | nindent 2 }}
{{- end -}}
