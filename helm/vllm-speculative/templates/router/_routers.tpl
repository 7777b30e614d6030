{{/*
The routers of a release: one for all engines, or one for each of router.entries. Arguments: dict root, engines, out.
Sets out.routers, a list of dicts: root, entry, fullname (objects), routed (label of its engines), engines; and the
fullname of its router in each engine behind one.
*/}}
{{- define "vllm-speculative.routers" -}}
{{- $root := .root -}}
{{- $routers := list -}}
{{- if and $root.Values.router.enabled (not $root.Values.kserve.enabled) -}}
{{- $all := list -}}
{{- range .engines }}{{ if .routed }}{{ $all = append $all . }}{{ end }}{{ end -}}
{{- if $root.Values.router.entries -}}
{{- range $entry, $_ := $root.Values.router.entries -}}
{{- $members := list -}}
{{- range $all }}{{ if eq .entry $entry }}{{ $members = append $members . }}{{ end }}{{ end -}}
{{- $routers = append $routers (dict "root" $root "entry" $entry "fullname" (printf "%s-%s-router" $root.Release.Name $entry) "routed" $entry "engines" $members) -}}
{{- end -}}
{{- else -}}
{{- $routers = list (dict "root" $root "entry" "" "fullname" (printf "%s-router" $root.Release.Name) "routed" "true" "engines" $all) -}}
{{- end -}}
{{- end -}}
{{- range $router := $routers }}{{ range .engines }}{{ $_ := set . "router" $router.fullname }}{{ end }}{{ end -}}
{{- $_ := set .out "routers" $routers -}}
{{- end -}}

{{/* Labels that select one router's pods. Argument: router. */}}
{{- define "vllm-speculative.routerSelectorLabels" -}}
app.kubernetes.io/name: vllm-speculative
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: router
{{- with .entry }}
vllm-speculative/router: {{ . | toYaml }}
{{- end }}
{{- end -}}

{{- define "vllm-speculative.routerLabels" -}}
{{ include "vllm-speculative.routerPodLabels" . }}
helm.sh/chart: {{ include "vllm-speculative.chart" .root }}
{{- end -}}

{{- define "vllm-speculative.routerPodLabels" -}}
{{ include "vllm-speculative.routerSelectorLabels" . }}
app.kubernetes.io/version: {{ .root.Values.router.image.tag | quote }}
{{ include "vllm-speculative.releaseLabels" .root }}
{{- end -}}
