{{/*
The engines of a release: `engines` deep-merged over the sections at the top, and a baseline for each that wants one.
Arguments: dict root, out. Sets out.engines, a list of dicts:
  root, facts (files of facts, and arguments by value), name (label), fullname (objects), claimName, routed (behind a router), entry (name of that
  router where there are several), router (fullname of its router), baseline (bool),
  path (prefix for error messages), v (the engine's values), chosen (by preset and task), version, bound (runner that a
  value needs)
Templates cannot return structures without turning integers into floats, so the list is put into `out`. Every template of
the chart asks for it: the first to ask computes and checks it, and leaves it with the values for the others.
*/}}
{{- define "vllm-speculative.engines" -}}
{{- if not (hasKey .root.Values "computedRelease") -}}
{{- $out := dict -}}
{{- include "vllm-speculative.computeEngines" (dict "root" .root "out" $out) -}}
{{- $_ := set .root.Values "computedRelease" $out -}}
{{- end -}}
{{- range $key, $value := .root.Values.computedRelease }}{{ $_ := set $.out $key $value }}{{ end -}}
{{- end -}}

{{- define "vllm-speculative.computeEngines" -}}
{{- $root := .root -}}
{{- $facts := dict -}}
{{- range $file := list "engines" "accelerators" "models" "presets" -}}
{{- $_ := set $facts $file ($root.Files.Get (printf "files/%s.yaml" $file) | fromYaml) -}}
{{- end -}}
{{- $arguments := dict -}}
{{- range $facts.engines.arguments }}{{ $_ := set $arguments .value . }}{{ end -}}
{{- $_ := set $facts "arguments" $arguments -}}
{{- $sections := list "engine" "speculative" "lora" "accelerator" "modelCache" "huggingFace" "probes" "sharedMemory" "shutdown" "baseline" "podDisruptionBudget" "autoscaling" -}}
{{- $overrides := $root.Values.engines -}}
{{- $single := empty $overrides -}}
{{- if $single }}{{ $overrides = dict $root.Release.Name dict }}{{ end -}}
{{- range $name := $root.Values.router.engines -}}
{{- if not (hasKey $overrides $name) -}}
{{- include "vllm-speculative.fail" (list "SD551" "router.engines" (printf "there is no engine %q" $name) (printf "one of %s" (keys $overrides | sortAlpha | join ", "))) -}}
{{- end -}}
{{- end -}}
{{- $engines := list -}}
{{- range $name, $override := $overrides -}}
{{- $v := dict -}}
{{- range $section := $sections -}}
{{- $_ := set $v $section (deepCopy (get $root.Values $section)) -}}
{{- end -}}
{{- include "vllm-speculative.merge" (list $v (default dict $override)) -}}
{{- /* KServe makes a Deployment, whose pods cannot have claims of their own. */ -}}
{{- if and $root.Values.kserve.enabled (kindIs "map" $v.engine) }}{{ $_ := set $v.engine "workload" "Deployment" }}{{ end -}}
{{- $fullname := ternary $root.Release.Name (printf "%s-%s" $root.Release.Name $name) $single -}}
{{- $path := ternary "" (printf "engines.%s." $name) $single -}}
{{- if and (not $single) (regexMatch "^(router|deny|clients|benchmark)$|(^|-)(baseline|headless|test|models|epp|nvme)$|-router$" $name) -}}
{{- include "vllm-speculative.fail" (list "SD455" (printf "engines.%s" $name) "this name is taken by an object of the release" "another name") -}}
{{- end -}}
{{- $routed := or (empty $root.Values.router.engines) (has $name $root.Values.router.engines) -}}
{{- $entry := "" -}}
{{- range $router, $members := $root.Values.router.entries }}{{ if has $name $members }}{{ $entry = $router }}{{ end }}{{ end -}}
{{- if $root.Values.router.entries }}{{ $routed = ne $entry "" }}{{ end -}}
{{- $engine := dict "root" $root "facts" $facts "name" $name "fullname" $fullname "claimName" (printf "%s-models" $fullname) "routed" $routed "entry" $entry "router" "" "baseline" false "path" $path "v" $v -}}
{{- include "vllm-speculative.choose" $engine -}}
{{- include "vllm-speculative.checkEngine" $engine -}}
{{- $engines = append $engines $engine -}}
{{- if $v.baseline.enabled -}}
{{- $b := deepCopy $v -}}
{{- $_ := set $b.speculative "enabled" false -}}
{{- $_ := set $b.engine "replicas" $v.baseline.replicas -}}
{{- $_ := set $b.autoscaling "kind" "none" -}}
{{- $base := dict "root" $root "facts" $facts "name" (printf "%s-baseline" $name) "fullname" (printf "%s-baseline" $fullname) "claimName" $engine.claimName "routed" false "entry" "" "router" "" "baseline" true "path" $path "v" $b -}}
{{- include "vllm-speculative.checkEngine" $base -}}
{{- $engines = append $engines $base -}}
{{- end -}}
{{- end -}}
{{- include "vllm-speculative.routers" (dict "root" $root "engines" $engines "out" .out) -}}
{{- include "vllm-speculative.checkRouter" (dict "root" $root "engines" $engines "routers" .out.routers) -}}
{{- include "vllm-speculative.checkExtra" $root -}}
{{- include "vllm-speculative.checkTraffic" $root -}}
{{- include "vllm-speculative.checkKserve" (dict "root" $root "engines" $engines) -}}
{{- include "vllm-speculative.backends" (dict "root" $root "routers" .out.routers "engines" $engines "out" .out) -}}
{{- include "vllm-speculative.checkMonitoring" (dict "root" $root "engines" $engines) -}}
{{- range $engines }}{{ include "vllm-speculative.checkAutoscaling" (dict "engine" . "engines" $engines) }}{{ end -}}
{{- $_ := set .out "engines" $engines -}}
{{- end -}}

{{/* Deep merge in place. Arguments: list of destination, source. Unlike sprig's merge it takes false, 0 and null over. */}}
{{- define "vllm-speculative.merge" -}}
{{- $to := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $to $key)) -}}
{{- include "vllm-speculative.merge" (list (get $to $key) $value) -}}
{{- else -}}
{{- $_ := set $to $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
