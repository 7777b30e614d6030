{{/* Bytes of an engine pod's memory limit: as given, else the request and /dev/shm, which counts against it. Argument: engine. */}}
{{- define "vllm-speculative.memoryLimit" -}}
{{- $r := .v.engine.resources -}}
{{- $given := get (default dict $r.limits) "memory" -}}
{{- $request := get (default dict $r.requests) "memory" -}}
{{- if $given -}}
{{- include "vllm-speculative.bytes" (list $given (printf "%sengine.resources.limits.memory" .path)) -}}
{{- else if $request -}}
{{- add (include "vllm-speculative.bytes" (list $request (printf "%sengine.resources.requests.memory" .path)) | int64) (include "vllm-speculative.bytes" (list .v.sharedMemory.size (printf "%ssharedMemory.size" .path)) | int64) -}}
{{- else -}}
{{- include "vllm-speculative.fail" (list "SD355" (printf "%sengine.resources.requests.memory" .path) "an engine pod without a memory request or limit" "a request, for example 48Gi") -}}
{{- end -}}
{{- end -}}

{{/* Resources of the engine container: the values, the memory limit, and one GPU for each rank. Argument: engine. */}}
{{- define "vllm-speculative.resources" -}}
{{- $resources := deepCopy .v.engine.resources -}}
{{- $limits := default dict $resources.limits -}}
{{- $requests := default dict $resources.requests -}}
{{- if not $limits.memory -}}
{{- $bytes := include "vllm-speculative.memoryLimit" . | int64 -}}
{{- $_ := set $limits "memory" (ternary (printf "%dMi" (div $bytes 1048576)) (toString $bytes) (eq 0 (mod $bytes 1048576 | int))) -}}
{{- end -}}
{{- if ne .v.accelerator.type "cpu" -}}
{{- $gpus := include "vllm-speculative.gpus" . -}}
{{- $_ := set $limits "nvidia.com/gpu" $gpus -}}
{{- $_ := set $requests "nvidia.com/gpu" $gpus -}}
{{- end -}}
{{- include "vllm-speculative.quantities" (dict "requests" $requests "limits" $limits) -}}
{{- end -}}

{{/* Node labels that an engine pod asks for, by cloud and accelerator. Argument: engine. */}}
{{- define "vllm-speculative.nodeSelector" -}}
{{- $selector := dict -}}
{{- $a := .v.accelerator -}}
{{- if ne $a.type "cpu" -}}
{{- $machines := default dict (get .facts.accelerators.machines .root.Values.cloud) -}}
{{- if $a.machineType }}{{ $_ := set $selector "node.kubernetes.io/instance-type" $a.machineType }}{{ end -}}
{{- if eq .root.Values.cloud "gke" -}}
{{- $label := "" -}}
{{- range $name, $machine := $machines -}}
{{- if or (eq $name $a.machineType) (and (not $a.machineType) (not $label) (eq $machine.accelerator $a.type)) }}{{ $label = $machine.acceleratorLabel }}{{ end -}}
{{- end -}}
{{- $_ := set $selector "cloud.google.com/gke-accelerator" $label -}}
{{- else if not $a.machineType -}}
{{- $_ := set $selector "nvidia.com/gpu.product" (get .facts.accelerators.accelerators $a.type).gpuProduct -}}
{{- end -}}
{{- end -}}
{{- with .v.modelCache.image.preloaded -}}
{{- if and .diskImage (eq $.v.modelCache.type "image") -}}
{{- $_ := set $selector (printf "cloud.google.com.node-restriction.kubernetes.io/gke-secondary-boot-disk-%s" .diskImage) (printf "CONTAINER_IMAGE_CACHE.%s" .project) -}}
{{- end -}}
{{- end -}}
{{- $selector = merge (deepCopy .v.engine.nodeSelector) $selector -}}
{{- if $selector }}{{ toYaml $selector }}{{ end -}}
{{- end -}}

{{- define "vllm-speculative.tolerations" -}}
{{- $tolerations := list -}}
{{- if ne .v.accelerator.type "cpu" -}}
{{- $tolerations = append $tolerations (dict "key" "nvidia.com/gpu" "operator" "Exists" "effect" "NoSchedule") -}}
{{- end -}}
{{- $tolerations = concat $tolerations .v.engine.tolerations -}}
{{- if $tolerations }}{{ toYaml $tolerations }}{{ end -}}
{{- end -}}
