{{/*
Arguments and environment variables of an engine, out of files/engines.yaml. Arguments: dict engine, out.
Sets out.args (list of text), out.env (dict name to text) and out.speculative (what goes behind --speculative-config).
*/}}
{{- define "vllm-speculative.arguments" -}}
{{- $engine := .engine -}}
{{- $args := list -}}
{{- $env := dict -}}
{{- $json := dict -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" $engine "out" $models) -}}
{{- range $argument := $engine.facts.engines.arguments -}}
{{- $found := dict -}}
{{- include "vllm-speculative.setting" (dict "engine" $engine "models" $models "argument" $argument "out" $found) -}}
{{- if hasKey $found "value" -}}
{{- $index := include "vllm-speculative.row" (list $argument.rows $engine.version) -}}
{{- if ne $index "" -}}
{{- $row := index $argument.rows (int $index) -}}
{{- if $row.flag -}}
{{- $args = append $args $row.flag -}}
{{- if ne $row.kind "switch" -}}
{{- $args = append $args (ternary (toString $found.value) (include "vllm-speculative.number" $found.value) (eq $row.kind "string")) -}}
{{- end -}}
{{- else if $row.field -}}
{{- $_ := set $json $row.field $found.value -}}
{{- else if $row.env -}}
{{- $_ := set $env $row.env (toString $found.value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $json }}{{ $args = concat $args (list "--speculative-config" ($json | toRawJson)) }}{{ end -}}
{{- $args = concat $args (list "--port" "8000") $engine.v.engine.extraArgs -}}
{{- $_ := set .out "args" $args -}}
{{- $_ := set .out "env" $env -}}
{{- $_ := set .out "speculative" $json -}}
{{- end -}}

{{/*
The value behind one row of arguments. Sets out.value (integers as int64) when there is one to pass; says in an error when
the version has no way to pass it. Arguments: dict engine, models, argument, out.
*/}}
{{- define "vllm-speculative.setting" -}}
{{- $engine := .engine -}}
{{- $argument := .argument -}}
{{- $value := $engine.v -}}
{{- range $key := splitList "." $argument.value }}{{ $value = get (default dict $value) $key }}{{ end -}}
{{- if hasKey .models.settings $argument.value }}{{ $value = get .models.settings $argument.value }}{{ end -}}
{{- $speculative := hasPrefix "speculative." $argument.value -}}
{{- $unset := or (kindIs "invalid" $value) (eq (toString $value) "") (eq (toString $value) "false") (and (kindIs "slice" $value) (empty $value)) -}}
{{- if and $argument.default (eq (toString $argument.default) (toString $value)) }}{{ $unset = true }}{{ end -}}
{{- if and (not $unset) (or (not $speculative) $engine.v.speculative.enabled) -}}
{{- $index := include "vllm-speculative.row" (list $argument.rows $engine.version) -}}
{{- if and (eq $index "") (not $argument.optional) -}}
{{- $rows := list -}}
{{- range $argument.rows }}{{ $rows = append $rows (printf "%s (vLLM %s%s)" (coalesce .flag .field .env "no flag") .from (ternary (printf " to before %s" (default "" .before)) " and later" (not (empty .before)))) }}{{ end -}}
{{- include "vllm-speculative.fail" (list "SD154" (printf "%s%s" $engine.path $argument.value) (printf "vLLM %s has no argument for it; it is %s" $engine.version (join ", " $rows)) "leave it unset, or another engine version") -}}
{{- end -}}
{{- if ne $index "" -}}
{{- $row := index $argument.rows (int $index) -}}
{{- if eq $row.kind "int" }}{{ $value = int64 $value -}}
{{- else if eq $row.kind "float" }}{{ $value = float64 $value -}}
{{- else if eq $row.kind "schedule" -}}
{{- $triples := list -}}
{{- range $value }}{{ $triples = append $triples (list (int64 .from) (int64 .to) (int64 .tokens)) }}{{ end -}}
{{- $value = $triples -}}
{{- else if eq $row.kind "method" -}}
{{- $rows := (get $engine.facts.engines.methods $value).rows -}}
{{- $value = default "" (index $rows (include "vllm-speculative.row" (list $rows $engine.version) | int)).engineName -}}
{{- end -}}
{{- /* A method that the engine infers is not told to it. */ -}}
{{- if ne (toString $value) "" }}{{ $_ := set .out "value" $value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* One argument as YAML. Kubernetes would expand $(NAME) and fold $$, so dollars are doubled where that could happen. */}}
{{- define "vllm-speculative.argument" -}}
{{- $text := . -}}
{{- if or (contains "$(" $text) (contains "$$" $text) }}{{ $text = replace "$" "$$" $text }}{{ end -}}
{{- $text | toJson -}}
{{- end -}}
