{{/* Whether the cluster has an API. Arguments: list of root, group/version/Kind. */}}
{{- define "vllm-speculative.hasApi" -}}
{{- if (index . 0).Capabilities.APIVersions.Has (index . 1) }}yes{{ end -}}
{{- end -}}

{{/*
What scrapes: podMonitor, podMonitoring, annotations or none. `auto` takes what the cluster has; what was asked for and the
cluster lacks is "missing". Argument: root.
*/}}
{{- define "vllm-speculative.scrapeKind" -}}
{{- $kind := .Values.monitoring.scrape.kind -}}
{{- $operator := include "vllm-speculative.hasApi" (list . "monitoring.coreos.com/v1/PodMonitor") -}}
{{- $google := include "vllm-speculative.hasApi" (list . "monitoring.googleapis.com/v1/PodMonitoring") -}}
{{- if eq $kind "auto" -}}
{{- if $operator }}podMonitor{{ else if $google }}podMonitoring{{ else }}none{{ end -}}
{{- else if or (and (eq $kind "podMonitor") (not $operator)) (and (eq $kind "podMonitoring") (not $google)) -}}
missing
{{- else -}}
{{ $kind }}
{{- end -}}
{{- end -}}

{{/* Who evaluates the rules: prometheusRule, googleRules, configMap, none or missing, as with scrapeKind. Argument: root. */}}
{{- define "vllm-speculative.rulesKind" -}}
{{- $kind := .Values.monitoring.rules.kind -}}
{{- $operator := include "vllm-speculative.hasApi" (list . "monitoring.coreos.com/v1/PrometheusRule") -}}
{{- $google := include "vllm-speculative.hasApi" (list . "monitoring.googleapis.com/v1/Rules") -}}
{{- if eq $kind "auto" -}}
{{- if $operator }}prometheusRule{{ else if $google }}googleRules{{ else }}none{{ end -}}
{{- else if or (and (eq $kind "prometheusRule") (not $operator)) (and (eq $kind "googleRules") (not $google)) -}}
missing
{{- else -}}
{{ $kind }}
{{- end -}}
{{- end -}}

{{/* Refuses monitoring that would show or warn of nothing. Arguments: dict root, engines. */}}
{{- define "vllm-speculative.checkMonitoring" -}}
{{- $m := .root.Values.monitoring -}}
{{- if and (eq $m.scrape.kind "podMonitoring") $m.scrape.namespace -}}
{{- include "vllm-speculative.fail" (list "SD650" "monitoring.scrape.namespace" "a PodMonitoring scrapes pods of its own namespace alone" "leave it empty, or monitoring.scrape.kind podMonitor") -}}
{{- end -}}
{{- if and (eq $m.rules.kind "googleRules") $m.rules.namespace -}}
{{- include "vllm-speculative.fail" (list "SD650" "monitoring.rules.namespace" "Google's Rules see the series of their own namespace alone" "leave it empty, or monitoring.rules.kind prometheusRule") -}}
{{- end -}}
{{- if and $m.dashboards.enabled (eq $m.rules.kind "none") -}}
{{- include "vllm-speculative.fail" (list "SD651" "monitoring.dashboards.enabled" "the dashboards show recorded series, and monitoring.rules.kind none records none" "monitoring.rules.kind auto, prometheusRule, googleRules or configMap") -}}
{{- end -}}
{{- $interval := include "vllm-speculative.seconds" $m.scrape.interval | int64 -}}
{{- if gt (include "vllm-speculative.seconds" $m.scrape.timeout | int64) $interval -}}
{{- include "vllm-speculative.fail" (list "SD652" "monitoring.scrape.timeout" (printf "%s is longer than the interval of %s, which Prometheus refuses" $m.scrape.timeout $m.scrape.interval) "a timeout of the interval at most") -}}
{{- end -}}
{{- $known := list -}}
{{- range (.root.Files.Get "rules/alerts.yaml" | fromYaml).groups }}{{ range .rules }}{{ $known = append $known .alert }}{{ end }}{{ end -}}
{{- range $i, $name := $m.alerts.disabled -}}
{{- if not (has $name $known) -}}
{{- include "vllm-speculative.fail" (list "SD653" (printf "monitoring.alerts.disabled[%d]" $i) (printf "there is no alert %q" $name) (printf "one of %s" ($known | uniq | sortAlpha | join ", "))) -}}
{{- end -}}
{{- end -}}
{{- range $key, $_ := $m.alerts.labels -}}
{{- if has $key (list "alertname" "namespace" "release" "engine" "arm" "severity" "method") -}}
{{- include "vllm-speculative.fail" (list "SD654" (printf "monitoring.alerts.labels.%s" $key) "every alert has this label already" "another name") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Seconds of a duration such as 15s or 1m, which the schema has checked. */}}
{{- define "vllm-speculative.seconds" -}}
{{- mul (regexFind "^[0-9]+" . | int64) (ternary 60 1 (hasSuffix "m" .)) -}}
{{- end -}}
