{{/*
Where the models of an engine come from. Arguments: dict engine, out.
Sets out.settings (what the engine is told instead of the plain value, by path of the value), out.fetch (models to fetch:
repository, revision, directory), out.remote (the engine itself asks the Hub).
A model of the Hub lies at mountPath/org/name/revision, so that the old revision is still there for a rollback.
*/}}
{{- define "vllm-speculative.models" -}}
{{- $engine := .engine -}}
{{- $settings := dict -}}
{{- $fetch := list -}}
{{- $remote := false -}}
{{- $sources := list (list "engine.model" $engine.v.engine.model) -}}
{{- if $engine.v.speculative.enabled }}{{ $sources = append $sources (list "speculative.model" $engine.v.speculative.model) }}{{ end -}}
{{- range $source := $sources -}}
{{- $path := index $source 0 -}}
{{- $model := index $source 1 -}}
{{- if and $model.name (not (hasPrefix "/" $model.name)) -}}
{{- $directory := printf "%s/%s/%s" $engine.v.modelCache.mountPath $model.name $model.revision -}}
{{- if or $engine.v.huggingFace.offline $engine.v.modelCache.prefetch.enabled -}}
{{- $_ := set $settings (printf "%s.name" $path) $directory -}}
{{- $_ := set $settings (printf "%s.revision" $path) "" -}}
{{- if not $engine.v.huggingFace.offline -}}
{{- $fetch = append $fetch (dict "repository" $model.name "revision" $model.revision "directory" $directory) -}}
{{- end -}}
{{- else -}}
{{- $remote = true -}}
{{- end -}}
{{- else if $model.name -}}
{{- $_ := set $settings (printf "%s.revision" $path) "" -}}
{{- end -}}
{{- end -}}
{{- $_ := set $settings "engine.model.servedName" (default $engine.v.engine.model.name $engine.v.engine.model.servedName) -}}
{{- if $engine.v.speculative.enabled -}}
{{- $method := get $engine.facts.engines.methods $engine.v.speculative.method -}}
{{- $row := index $method.rows (include "vllm-speculative.row" (list $method.rows $engine.version) | int) -}}
{{- with $row.model }}{{ $_ := set $settings "speculative.model.name" . }}{{ end -}}
{{- end -}}
{{- $_ := set .out "settings" $settings -}}
{{- $_ := set .out "fetch" $fetch -}}
{{- $_ := set .out "remote" $remote -}}
{{- end -}}
