{{/*
Arguments and environment variables of an engine, out of files/engines.yaml. Arguments: dict engine, out.
Sets out.args (list of text) and out.env (dict name to text).
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
{{- $row := $found.row -}}
{{- if $row.flag -}}
{{- $args = append $args $row.flag -}}
{{- if has $row.kind (list "words" "adapters") }}{{ $args = concat $args $found.value -}}
{{- else if has $row.kind (list "int" "float") }}{{ $args = append $args (include "vllm-speculative.number" $found.value) -}}
{{- else if ne $row.kind "switch" }}{{ $args = append $args (toString $found.value) }}{{ end -}}
{{- else if $row.key -}}
{{- if not (hasKey $json $row.field) }}{{ $_ := set $json $row.field dict }}{{ end -}}
{{- $_ := set (get $json $row.field) $row.key $found.value -}}
{{- else if $row.field -}}
{{- $_ := set $json $row.field $found.value -}}
{{- else if $row.env -}}
{{- $_ := set $env $row.env (toString $found.value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $json }}{{ $args = concat $args (list "--speculative-config" ($json | toRawJson)) }}{{ end -}}
{{- $args = concat $args (list "--port" "8000") $engine.v.engine.extraArgs -}}
{{- $_ := set .out "args" $args -}}
{{- $_ := set .out "env" $env -}}
{{- end -}}

{{/*
A value that was set, as the values have it. Arguments: dict engine, argument (its row of the table), out. Sets out.value
unless it is null, empty, a switch that is off, what the engine does anyway, or of a speculation that is off. (What is set
of LoRA while that is off, checkLora refuses.)
*/}}
{{- define "vllm-speculative.given" -}}
{{- $argument := .argument -}}
{{- $value := .engine.v -}}
{{- range $key := splitList "." $argument.value }}{{ $value = get (default dict $value) $key }}{{ end -}}
{{- $unset := or (kindIs "invalid" $value) (eq (toString $value) "") (and (has (kindOf $value) (list "slice" "map")) (empty $value)) -}}
{{- if and (eq (toString $value) "false") (ne (first $argument.rows).kind "bool") }}{{ $unset = true }}{{ end -}}
{{- if and (hasKey $argument "default") (eq (toString $argument.default) (toString $value)) }}{{ $unset = true }}{{ end -}}
{{- if and (hasPrefix "speculative." $argument.value) (not .engine.v.speculative.enabled) }}{{ $unset = true }}{{ end -}}
{{- if not $unset }}{{ $_ := set .out "value" $value }}{{ end -}}
{{- end -}}

{{/*
The value behind one row of arguments, as the version takes it. Sets out.value (integers as int64) and out.row when there
is one to pass; says in an error when the version has no way to pass it. Arguments: dict engine, models, argument, out.
*/}}
{{- define "vllm-speculative.setting" -}}
{{- $engine := .engine -}}
{{- $argument := .argument -}}
{{- $given := dict -}}
{{- include "vllm-speculative.given" (dict "engine" $engine "argument" $argument "out" $given) -}}
{{- if hasKey .models.settings $argument.value -}}
{{- $given = dict -}}
{{- with get .models.settings $argument.value }}{{ $_ := set $given "value" . }}{{ end -}}
{{- end -}}
{{- $index := "" -}}
{{- if hasKey $given "value" }}{{ $index = include "vllm-speculative.argumentRow" (list $engine $argument) }}{{ end -}}
{{- if ne $index "" -}}
{{- $row := index $argument.rows (int $index) -}}
{{- $value := $given.value -}}
{{- if eq $row.kind "int" }}{{ $value = int64 $value -}}
{{- else if eq $row.kind "float" }}{{ $value = float64 $value -}}
{{- else if eq $row.kind "floats" -}}
{{- $numbers := list -}}
{{- range $value }}{{ $numbers = append $numbers (float64 .) }}{{ end -}}
{{- $value = $numbers -}}
{{- else if eq $row.kind "choice" }}{{ $value = get $row.choices $value -}}
{{- else if eq $row.kind "schedule" -}}
{{- $triples := list -}}
{{- range $value }}{{ $triples = append $triples (list (int64 .from) (int64 .to) (int64 .tokens)) }}{{ end -}}
{{- $value = $triples -}}
{{- else if eq $row.kind "method" -}}
{{- $rows := (get $engine.facts.engines.methods $value).rows -}}
{{- $value = default "" (index $rows (include "vllm-speculative.row" (list $rows $engine.version) | int)).engineName -}}
{{- end -}}
{{- /* A method that the engine infers is not told to it. */ -}}
{{- if ne (toString $value) "" -}}
{{- $_ := set .out "value" $value -}}
{{- $_ := set .out "row" $row -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Index of the argument's row for the engine's version, as text; an error where the version has none, or does nothing with
it, or lacks the choice. Empty for an optional one. Arguments: list of engine, argument.
*/}}
{{- define "vllm-speculative.argumentRow" -}}
{{- $engine := index . 0 -}}
{{- $argument := index . 1 -}}
{{- $at := printf "%s%s" $engine.path $argument.value -}}
{{- $index := include "vllm-speculative.row" (list $argument.rows $engine.version) -}}
{{- $fix := "leave it unset, or another engine version" -}}
{{- with $argument.instead }}{{ $fix = printf "leave it unset; or %s" . }}{{ end -}}
{{- if ne $index "" -}}
{{- $field := default "" (index $argument.rows (int $index)).field -}}
{{- $without := default list (get $engine.facts.engines.withoutEffect $field) -}}
{{- with include "vllm-speculative.row" (list $without $engine.version) -}}
{{- include "vllm-speculative.fail" (list "SD165" $at (printf "vLLM %s takes it, and it %s" $engine.version (index $without (int .)).does) $fix) -}}
{{- end -}}
{{- else if not $argument.optional -}}
{{- $rows := list -}}
{{- range $argument.rows }}{{ $rows = append $rows (printf "%s (vLLM %s%s)" (coalesce .flag .field .env "no flag") .from (ternary (printf " to before %s" (default "" .before)) " and later" (not (empty .before)))) }}{{ end -}}
{{- include "vllm-speculative.fail" (list "SD154" $at (printf "vLLM %s has no argument for it; it is %s" $engine.version (join ", " $rows)) $fix) -}}
{{- end -}}
{{- $index -}}
{{- end -}}

{{/* One argument as YAML. Kubernetes would expand $(NAME) and fold $$, so dollars are doubled where that could happen. */}}
{{- define "vllm-speculative.argument" -}}
{{- $text := . -}}
{{- if or (contains "$(" $text) (contains "$$" $text) }}{{ $text = replace "$" "$$" $text }}{{ end -}}
{{- $text | toJson -}}
{{- end -}}
