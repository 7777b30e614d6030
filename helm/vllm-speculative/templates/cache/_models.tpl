{{/*
Where the models of an engine come from. Arguments: dict engine, out.
Sets out.settings (what the engine is told instead of the plain value, by path of the value), out.fetch (models to fetch:
repository, revision), out.remote (the engine itself asks the Hub).
Models of the Hub lie in the Hub's own layout under mountPath/hub. A fetched model is told by name and revision where the
engine finds it so without network, else by the path of its snapshot; offline always by path.
*/}}
{{- define "vllm-speculative.models" -}}
{{- $engine := .engine -}}
{{- $settings := dict -}}
{{- $fetch := list -}}
{{- $remote := false -}}
{{- $byName := ne "" (include "vllm-speculative.row" (list $engine.facts.engines.limits.offlineNames $engine.version)) -}}
{{- $sources := list (list "engine.model" $engine.v.engine.model) -}}
{{- if $engine.v.speculative.enabled }}{{ $sources = append $sources (list "speculative.model" $engine.v.speculative.model) }}{{ end -}}
{{- if $engine.v.lora.enabled -}}
{{- range $i, $module := $engine.v.lora.modules }}{{ $sources = append $sources (list (printf "lora.modules[%d]" $i) $module) }}{{ end -}}
{{- end -}}
{{- range $source := $sources -}}
{{- $path := index $source 0 -}}
{{- $model := index $source 1 -}}
{{- if and $model.name (hasPrefix "/" $model.name) -}}
{{- $_ := set $settings (printf "%s.revision" $path) "" -}}
{{- else if $model.name -}}
{{- $offline := $engine.v.huggingFace.offline -}}
{{- $fetched := and (not $offline) $engine.v.modelCache.prefetch.enabled -}}
{{- if $fetched }}{{ $fetch = append $fetch (dict "repository" $model.name "revision" $model.revision) }}{{ end -}}
{{- if or $offline (and $fetched (or (not $byName) (hasPrefix "lora." $path))) -}}
{{- $_ := set $settings (printf "%s.name" $path) (printf "%s/hub/models--%s/snapshots/%s" $engine.v.modelCache.mountPath ($model.name | replace "/" "--") $model.revision) -}}
{{- $_ := set $settings (printf "%s.revision" $path) "" -}}
{{- if not (regexMatch "^[0-9a-f]{40}$" $model.revision) -}}
{{- include "vllm-speculative.fail" (list "SD754" (printf "%s%s.revision" $engine.path $path) (printf "%q does not tell the directory of the snapshot, which the engine needs here" $model.revision) "the commit's 40 hexadecimal digits") -}}
{{- end -}}
{{- else if not $fetched -}}
{{- $remote = true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $engine.v.lora.enabled $engine.v.lora.modules -}}
{{- $adapters := list -}}
{{- range $i, $module := $engine.v.lora.modules -}}
{{- $told := get $settings (printf "lora.modules[%d].name" $i) -}}
{{- $adapters = append $adapters (dict "name" $module.servedName "path" (default $module.name $told) | toRawJson) -}}
{{- end -}}
{{- $_ := set $settings "lora.modules" $adapters -}}
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
