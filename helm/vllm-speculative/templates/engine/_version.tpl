{{/* The engine's version, from engine.version or the image's tag. Argument: engine. */}}
{{- define "vllm-speculative.version" -}}
{{- $e := .v.engine -}}
{{- $tagged := "" -}}
{{- if not $e.image.digest }}{{ $tagged = regexFind "^v?[0-9]+[.][0-9]+[.][0-9]+" (toString $e.image.tag) | trimPrefix "v" }}{{ end -}}
{{- $version := $e.version -}}
{{- if and $version $tagged (ne (regexFind "^[0-9]+[.][0-9]+[.][0-9]+" $version) $tagged) -}}
{{- include "vllm-speculative.fail" (list "SD153" (printf "%sengine.version" .path) (printf "%s, but the image's tag %s says %s" $version $e.image.tag $tagged) "make them agree, or leave engine.version empty") -}}
{{- end -}}
{{- if not $version -}}
{{- if $tagged -}}
{{- $version = regexFind "[0-9]+[.][0-9]+[.][0-9]+([.]post[0-9]+)?" $e.image.tag -}}
{{- else if or $e.image.tag $e.image.digest -}}
{{- include "vllm-speculative.fail" (list "SD151" (printf "%sengine.version" .path) (printf "the image's %s does not tell vLLM's version, on which every argument depends" (ternary "digest" (printf "tag %q" $e.image.tag) (not (empty $e.image.digest)))) (printf "set engine.version, for example %s" .root.Chart.AppVersion)) -}}
{{- else -}}
{{- $version = .root.Chart.AppVersion -}}
{{- end -}}
{{- end -}}
{{- if not (include "vllm-speculative.row" (list .facts.engines.versions $version)) -}}
{{- $known := list -}}
{{- range .facts.engines.versions }}{{ $known = append $known (printf "%s to before %s" .from .before) }}{{ end -}}
{{- include "vllm-speculative.fail" (list "SD152" (printf "%sengine.version" .path) (printf "the chart does not know vLLM %s" $version) (printf "one of these: %s" (join "; " $known))) -}}
{{- end -}}
{{- $version -}}
{{- end -}}

{{/* Index of the first row whose half-open range holds the version, as text; empty when none does. Arguments: list of rows, version. */}}
{{- define "vllm-speculative.row" -}}
{{- $plain := regexFind "^[0-9]+[.][0-9]+[.][0-9]+" (index . 1) -}}
{{- $found := "" -}}
{{- range $i, $row := index . 0 -}}
{{- if and (eq $found "") (semverCompare (printf ">=%s" $row.from) $plain) (or (not $row.before) (semverCompare (printf "<%s" (default "999.0.0" $row.before)) $plain)) -}}
{{- $found = toString $i -}}
{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/* The row of runners that holds, as text for fromYaml. Argument: engine. */}}
{{- define "vllm-speculative.runnerRow" -}}
{{- index .facts.engines.runners (include "vllm-speculative.row" (list .facts.engines.runners .version) | int) | toYaml -}}
{{- end -}}

{{/*
The model runner: v0, v1 or v2. What engine.runner says; else the only one that has the method; else the only one that
heeds a value; else the version's own choice. Argument: engine.
*/}}
{{- define "vllm-speculative.runner" -}}
{{- $row := include "vllm-speculative.runnerRow" . | fromYaml -}}
{{- $runner := $row.default -}}
{{- with .bound }}{{ $runner = splitList " " . | first }}{{ end -}}
{{- range $name, $methods := $row.only -}}
{{- if and $.v.speculative.enabled (has $.v.speculative.method $methods) }}{{ $runner = $name }}{{ end -}}
{{- end -}}
{{- if eq .v.accelerator.type "cpu" }}{{ $runner = default $runner $row.cpu }}{{ end -}}
{{- default $runner .v.engine.runner -}}
{{- end -}}

{{/* The runner that the engine has to be told, empty where it finds it by itself. Argument: engine. */}}
{{- define "vllm-speculative.toldRunner" -}}
{{- $told := .v.engine.runner -}}
{{- if and (not $told) .bound }}{{ $told = include "vllm-speculative.runner" . }}{{ end -}}
{{- $told -}}
{{- end -}}
