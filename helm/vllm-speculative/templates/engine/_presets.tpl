{{/*
Fills in what neither values nor overrides say of speculation, out of files/presets.yaml: preset, then task, then default.
Sets engine.chosen, a list of dicts value, is, why, and changes engine.v.speculative in place. Argument: engine.
*/}}
{{- define "vllm-speculative.choose" -}}
{{- $engine := . -}}
{{- $s := .v.speculative -}}
{{- $presets := .facts.presets -}}
{{- $chosen := list -}}
{{- if and (kindIs "map" $s) $s.enabled -}}
{{- $preset := dict -}}
{{- with $s.preset }}{{ $preset = get $presets.presets . }}{{ end -}}
{{- $values := default dict $preset.values -}}
{{- if not $s.method -}}
{{- $_ := set $s "method" (default $presets.defaults.method $values.method) -}}
{{- if $values.method }}{{ $chosen = append $chosen (dict "value" "method" "is" $s.method "why" (printf "preset %s: %s" $s.preset $preset.why)) }}{{ end -}}
{{- end -}}
{{- /* A preset's other values are for its method: another method that was set leaves them out. */ -}}
{{- if eq $s.method (default "" $values.method) -}}
{{- range $key, $value := omit $values "method" -}}
{{- if kindIs "map" $value -}}
{{- $section := get $s $key -}}
{{- if kindIs "map" $section -}}
{{- /* Parts of a section belong together: one of them set leaves the others to the engine. */ -}}
{{- $free := true -}}
{{- range $section }}{{ if not (kindIs "invalid" .) }}{{ $free = false }}{{ end }}{{ end -}}
{{- range $part, $inner := $value -}}
{{- if $free -}}
{{- $_ := set $section $part $inner -}}
{{- $chosen = append $chosen (dict "value" (printf "%s.%s" $key $part) "is" $inner "why" (printf "preset %s" $s.preset)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "invalid" (index $s $key) -}}
{{- $_ := set $s $key $value -}}
{{- $chosen = append $chosen (dict "value" $key "is" $value "why" (printf "preset %s" $s.preset)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (kindIs "invalid" $s.numTokens) (ne $s.method "suffix") -}}
{{- $task := dict -}}
{{- with $s.task }}{{ $task = get $presets.tasks . }}{{ end -}}
{{- $_ := set $s "numTokens" (default $presets.defaults.numTokens $task.numTokens) -}}
{{- if $task.numTokens }}{{ $chosen = append $chosen (dict "value" "numTokens" "is" $s.numTokens "why" (printf "task %s: %s" $s.task $task.source)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "chosen" $chosen -}}
{{- end -}}
