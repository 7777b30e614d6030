{{/* Refuses a router whose answers would depend on which engine a request meets. Arguments: dict root, engines. */}}
{{- define "vllm-speculative.checkRouter" -}}
{{- if .root.Values.router.enabled -}}
{{- $names := list -}}
{{- range .engines -}}
{{- if .routed }}{{ $names = append $names (default .v.engine.model.name .v.engine.model.servedName) }}{{ end -}}
{{- end -}}
{{- if gt (len ($names | uniq)) 1 -}}
{{- include "vllm-speculative.fail" (list "SD552" "router.engines" (printf "the engines behind the router serve different models: %s" ($names | uniq | join ", ")) "engines of one model, or one engine.model.servedName for all") -}}
{{- end -}}
{{- end -}}
{{- end -}}
