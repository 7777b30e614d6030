{{/*
Refuses routers whose answers would depend on which engine a request meets, or that share an engine.
Arguments: dict root, engines, routers.
*/}}
{{- define "vllm-speculative.checkRouter" -}}
{{- $r := .root.Values.router -}}
{{- $engines := .engines -}}
{{- $seen := dict -}}
{{- range $entry, $members := $r.entries -}}
{{- range $name := $members -}}
{{- $found := false -}}
{{- range $engines }}{{ if and (eq .name $name) (not .baseline) }}{{ $found = true }}{{ end }}{{ end -}}
{{- if not $found -}}
{{- $known := list -}}
{{- range $engines }}{{ if not .baseline }}{{ $known = append $known .name }}{{ end }}{{ end -}}
{{- include "vllm-speculative.fail" (list "SD570" (printf "router.entries.%s" $entry) (printf "there is no engine %q" $name) (printf "one of %s" (join ", " $known))) -}}
{{- end -}}
{{- if hasKey $seen $name -}}
{{- include "vllm-speculative.fail" (list "SD571" (printf "router.entries.%s" $entry) (printf "two routers for one engine: %s is behind %s too" $name (get $seen $name)) "each engine behind one router") -}}
{{- end -}}
{{- $_ := set $seen $name $entry -}}
{{- end -}}
{{- end -}}
{{- if and $r.entries $r.engines -}}
{{- include "vllm-speculative.fail" (list "SD578" "router.engines" "router.entries is set too, and says which engines are behind which router" "one of the two") -}}
{{- end -}}
{{- if and $r.enabled .root.Values.traffic.inferencePool.enabled -}}
{{- include "vllm-speculative.fail" (list "SD571" "traffic.inferencePool.enabled" "two routers for one engine: the router and an endpoint picker" "router.enabled false, or traffic.inferencePool.enabled false") -}}
{{- end -}}
{{- range $router := .routers -}}
{{- if gt (len .fullname) 63 -}}
{{- include "vllm-speculative.fail" (list "SD457" (ternary "router" (printf "router.entries.%s" .entry) (empty .entry)) (printf "the name %s has %d characters, and 63 are the limit" .fullname (len .fullname)) "a shorter release or entry name") -}}
{{- end -}}
{{- $served := dict -}}
{{- range .engines }}{{ $model := default .v.engine.model.name .v.engine.model.servedName }}{{ $_ := set $served $model (append (default list (get $served $model)) .name) }}{{ end -}}
{{- if gt (len $served) 1 -}}
{{- $groups := list -}}
{{- range $_, $names := $served }}{{ $groups = append $groups (printf "%s: [%s]" (first $names) (join ", " $names)) }}{{ end -}}
{{- include "vllm-speculative.fail" (list "SD552" (ternary "router.engines" (printf "router.entries.%s" .entry) (empty .entry)) (printf "the engines behind the router serve different models: %s" (keys $served | sortAlpha | join ", ")) (printf "a router for each model, router.entries {%s}; or one engine.model.servedName for all" (join ", " $groups))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
