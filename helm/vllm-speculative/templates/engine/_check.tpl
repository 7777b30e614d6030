{{/*
Refuses what cannot work, before anything is rendered, and sets engine.version. Arguments: engine.
One message for each: code, path of the value, what is wrong, what would be right.
*/}}
{{- define "vllm-speculative.checkEngine" -}}
{{- include "vllm-speculative.checkShape" . -}}
{{- $_ := set . "version" (include "vllm-speculative.version" .) -}}
{{- $_ := set . "bound" (include "vllm-speculative.boundRunner" .) -}}
{{- include "vllm-speculative.checkModel" (list . "engine.model" .v.engine.model) -}}
{{- include "vllm-speculative.checkArguments" . -}}
{{- if .v.speculative.enabled }}{{ include "vllm-speculative.checkSpeculative" . }}{{ end -}}
{{- include "vllm-speculative.checkLora" . -}}
{{- include "vllm-speculative.checkAccelerator" . -}}
{{- include "vllm-speculative.checkPod" . -}}
{{- include "vllm-speculative.checkCache" . -}}
{{- end -}}

{{/* A section that was set to null would end in a template trace. */}}
{{- define "vllm-speculative.checkShape" -}}
{{- $engine := . -}}
{{- range $path := list "engine" "engine.image" "engine.model" "engine.toolCalling" "engine.resources" "speculative" "speculative.model" "speculative.promptLookup" "speculative.suffix" "speculative.load" "speculative.typical" "speculative.synthetic" "speculative.fly" "speculative.mtp" "speculative.dspark" "speculative.dflash" "lora" "accelerator" "modelCache" "modelCache.emptyDir" "modelCache.hostPath" "modelCache.hostPath.prepare" "modelCache.hostPath.prepare.image" "modelCache.pvc" "modelCache.gcsFuse" "modelCache.gcsFuse.cache" "modelCache.gcsFuse.sidecar" "modelCache.bootDisk" "modelCache.image" "modelCache.image.preloaded" "modelCache.prefetch" "huggingFace" "huggingFace.tokenSecret" "probes" "probes.startup" "probes.liveness" "probes.readiness" "sharedMemory" "shutdown" "baseline" "podDisruptionBudget" "autoscaling" "autoscaling.timePerOutputToken" "autoscaling.prometheus" "autoscaling.prometheus.authentication" "autoscaling.fallback" -}}
{{- $value := $engine.v -}}
{{- range $key := splitList "." $path }}{{ $value = get (default dict $value) $key }}{{ end -}}
{{- if not (kindIs "map" $value) -}}
{{- include "vllm-speculative.fail" (list "SD162" (printf "%s%s" $engine.path $path) "this section is null" "leave it out to keep its defaults") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.checkModel" -}}
{{- $engine := index . 0 -}}
{{- $path := printf "%s%s" $engine.path (index . 1) -}}
{{- $model := index . 2 -}}
{{- if not $model.name -}}
{{- include "vllm-speculative.fail" (list "SD158" (printf "%s.name" $path) "no model is named" "org/name of the Hugging Face Hub, or a path in the container that starts with /") -}}
{{- end -}}
{{- if hasPrefix "/" $model.name -}}
{{- if and (eq $engine.v.modelCache.type "emptyDir") (hasPrefix (printf "%s/" $engine.v.modelCache.mountPath) $model.name) -}}
{{- include "vllm-speculative.fail" (list "SD458" (printf "%s.name" $path) (printf "%s lies in the model cache, which as an emptyDir starts empty" $model.name) "modelCache.type hostPath or pvc, or a path in the image") -}}
{{- end -}}
{{- else if not (regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+$" $model.name) -}}
{{- include "vllm-speculative.fail" (list "SD158" (printf "%s.name" $path) (printf "%q is neither org/name nor a path that starts with /" $model.name) "for example meta-llama/Llama-3.1-8B-Instruct") -}}
{{- else if not $model.revision -}}
{{- include "vllm-speculative.fail" (list "SD751" (printf "%s.revision" $path) (printf "%s has no revision, so its weights could change under a running release" $model.name) "the commit's 40 hexadecimal digits, from the model's page on the Hub") -}}
{{- else if and (not (regexMatch "^[0-9a-f]{40}$" $model.revision)) (not $engine.v.huggingFace.allowMutableRevision) -}}
{{- include "vllm-speculative.fail" (list "SD752" (printf "%s.revision" $path) (printf "%q is a branch or tag, which can move" $model.revision) "the commit's 40 hexadecimal digits, or huggingFace.allowMutableRevision true") -}}
{{- else if and $engine.v.huggingFace.offline (eq $engine.v.modelCache.type "emptyDir") -}}
{{- include "vllm-speculative.fail" (list "SD458" (printf "%s.name" $path) (printf "offline, and the model cache is an emptyDir: %s is nowhere" $model.name) "modelCache.type hostPath or pvc that holds it, or a path in the image") -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.checkArguments" -}}
{{- $engine := . -}}
{{- $e := .v.engine -}}
{{- $typed := deepCopy .facts.engines.untyped -}}
{{- $variables := dict -}}
{{- range $argument := .facts.engines.arguments -}}
{{- range $argument.rows -}}
{{- with .flag }}{{ $_ := set $typed . $argument.value }}{{ end -}}
{{- with .env }}{{ $_ := set $variables . $argument.value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range .facts.engines.runners }}{{ with .env }}{{ $_ := set $variables . "engine.runner" }}{{ end }}{{ end -}}
{{- range $i, $extra := $e.extraArgs -}}
{{- /* vLLM takes --a-b, --a_b, --no-a-b, --a.b=1 for a key of --a's JSON, and short flags with their value attached. */ -}}
{{- $flag := $extra | splitList "=" | first | splitList "." | first | replace "_" "-" -}}
{{- if hasPrefix "--no-" $flag }}{{ $flag = printf "--%s" (trimPrefix "--no-" $flag) }}{{ end -}}
{{- if regexMatch "^-[a-z]+[0-9]+$" $flag }}{{ $flag = regexFind "^-[a-z]+" $flag }}{{ end -}}
{{- if has $flag (list "--hf-token" "--api-key") -}}
{{- include "vllm-speculative.fail" (list "SD753" (printf "%sengine.extraArgs[%d]" $engine.path $i) (printf "%s puts a secret into the pod's arguments, which everybody can read who may list pods" $flag) (ternary "huggingFace.tokenSecret" "traffic.apiKeySecret" (eq $flag "--hf-token"))) -}}
{{- end -}}
{{- if hasKey $typed $flag -}}
{{- include "vllm-speculative.fail" (list "SD156" (printf "%sengine.extraArgs[%d]" $engine.path $i) (printf "%s is set by %s" $flag (get $typed $flag)) (printf "set %s" (get $typed $flag))) -}}
{{- end -}}
{{- end -}}
{{- range $i, $variable := $e.extraEnv -}}
{{- if and (has $variable.name (list "HF_TOKEN" "HUGGING_FACE_HUB_TOKEN" "VLLM_API_KEY")) (hasKey $variable "value") -}}
{{- include "vllm-speculative.fail" (list "SD753" (printf "%sengine.extraEnv[%d]" $engine.path $i) (printf "%s stands in clear text" $variable.name) "valueFrom with a secretKeyRef") -}}
{{- end -}}
{{- if hasKey $variables $variable.name -}}
{{- include "vllm-speculative.fail" (list "SD168" (printf "%sengine.extraEnv[%d]" $engine.path $i) (printf "%s is set by %s" $variable.name (get $variables $variable.name)) (printf "set %s" (get $variables $variable.name))) -}}
{{- end -}}
{{- end -}}
{{- if and $e.toolCalling.enabled (not $e.toolCalling.parser) -}}
{{- include "vllm-speculative.fail" (list "SD159" (printf "%sengine.toolCalling.parser" .path) "tool calling needs the parser of the model's tool calls" "for example llama3_json, hermes or qwen3_coder") -}}
{{- end -}}
{{- $row := include "vllm-speculative.runnerRow" . | fromYaml -}}
{{- if and $e.runner (not (has $e.runner $row.choice)) -}}
{{- include "vllm-speculative.fail" (list "SD157" (printf "%sengine.runner" .path) (printf "vLLM %s has no choice of runner %s" .version $e.runner) (ternary "leave it empty" (printf "one of %s" (join ", " $row.choice)) (empty $row.choice))) -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.checkAccelerator" -}}
{{- $a := .v.accelerator -}}
{{- $types := .facts.accelerators.accelerators -}}
{{- if not (hasKey $types $a.type) -}}
{{- include "vllm-speculative.fail" (list "SD452" (printf "%saccelerator.type" .path) (printf "there is no accelerator %q" $a.type) (printf "one of %s" (keys $types | sortAlpha | join ", "))) -}}
{{- end -}}
{{- if eq $a.type "cpu" -}}
{{- if eq "" (include "vllm-speculative.row" (list .facts.engines.limits.cpu .version)) -}}
{{- include "vllm-speculative.fail" (list "SD155" (printf "%saccelerator.type" .path) (printf "vLLM %s has no build for CPUs" .version) "vLLM 0.8.5 or later, or a GPU") -}}
{{- end -}}
{{- if not .v.engine.kvCacheMemoryBytes -}}
{{- include "vllm-speculative.fail" (list "SD352" (printf "%sengine.kvCacheMemoryBytes" .path) "a CPU engine that is not told takes its KV cache as a share of the whole node's memory" "bytes of KV cache, for example 1073741824") -}}
{{- end -}}
{{- else -}}
{{- $machines := default dict (get .facts.accelerators.machines .root.Values.cloud) -}}
{{- $here := list -}}
{{- range $machines }}{{ $here = append $here .accelerator }}{{ end -}}
{{- if and $machines (not (has $a.type $here)) -}}
{{- include "vllm-speculative.fail" (list "SD453" (printf "%saccelerator.type" .path) (printf "%s has no machine with %s" .root.Values.cloud $a.type) (printf "one of %s%s" ($here | uniq | sortAlpha | join ", ") (ternary "; its 24 GB class is l4" "" (and (eq $a.type "a10g") (has "l4" $here))))) -}}
{{- end -}}
{{- if and $machines $a.machineType -}}
{{- if not (hasKey $machines $a.machineType) -}}
{{- include "vllm-speculative.fail" (list "SD454" (printf "%saccelerator.machineType" .path) (printf "%s has no machine type %q that the chart knows" .root.Values.cloud $a.machineType) (printf "one of %s" (keys $machines | sortAlpha | join ", "))) -}}
{{- end -}}
{{- if ne (get $machines $a.machineType).accelerator $a.type -}}
{{- include "vllm-speculative.fail" (list "SD454" (printf "%saccelerator.machineType" .path) (printf "%s has %s, not %s" $a.machineType (get $machines $a.machineType).accelerator $a.type) "make type and machineType agree") -}}
{{- end -}}
{{- end -}}
{{- $count := $a.count -}}
{{- if and (not $count) $a.machineType $machines }}{{ $count = (get $machines $a.machineType).count }}{{ end -}}
{{- $gpus := include "vllm-speculative.gpus" . | int64 -}}
{{- if and $count (gt $gpus (int64 $count)) -}}
{{- include "vllm-speculative.fail" (list "SD456" (printf "%sengine.tensorParallelSize" .path) (printf "a pod needs %d GPUs (tensor, pipeline and data parallel sizes multiplied), a node has %d" $gpus (int64 $count)) "smaller parallel sizes, or a larger machine type") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.checkPod" -}}
{{- $e := .v.engine -}}
{{- if gt (len .fullname) 52 -}}
{{- include "vllm-speculative.fail" (list "SD457" (printf "%sengine" .path) (printf "the name %s has %d characters; with what Kubernetes adds to a StatefulSet's name 52 are left" .fullname (len .fullname)) "a shorter release or engine name") -}}
{{- end -}}
{{- range $kind := list "requests" "limits" -}}
{{- range $name, $_ := default dict (get $e.resources $kind) -}}
{{- if contains "/" $name -}}
{{- include "vllm-speculative.fail" (list "SD459" (printf "%sengine.resources.%s" $.path $kind) (printf "%s follows from the parallel sizes" $name) "leave it out; set engine.tensorParallelSize") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $e.kvCacheMemoryBytes (not (kindIs "invalid" $e.gpuMemoryUtilization)) -}}
{{- include "vllm-speculative.fail" (list "SD351" (printf "%sengine.gpuMemoryUtilization" .path) "engine.kvCacheMemoryBytes is set too, and the engine then ignores the utilisation" "one of the two") -}}
{{- end -}}
{{- $shm := include "vllm-speculative.bytes" (list .v.sharedMemory.size (printf "%ssharedMemory.size" .path)) | int64 -}}
{{- $limit := include "vllm-speculative.memoryLimit" . | int64 -}}
{{- if le $limit $shm -}}
{{- include "vllm-speculative.fail" (list "SD353" (printf "%sengine.resources.limits.memory" .path) (printf "%d MiB, of which /dev/shm alone may take %d" (div $limit 1048576) (div $shm 1048576)) "a limit above sharedMemory.size, or a smaller sharedMemory.size") -}}
{{- end -}}
{{- if and (eq .v.accelerator.type "cpu") (le $limit (add $shm (int64 $e.kvCacheMemoryBytes))) -}}
{{- include "vllm-speculative.fail" (list "SD354" (printf "%sengine.resources.limits.memory" .path) (printf "%d MiB, of which the KV cache and /dev/shm take %d: nothing is left for the weights" (div $limit 1048576) (div (add $shm (int64 $e.kvCacheMemoryBytes)) 1048576)) "a larger limit, or a smaller engine.kvCacheMemoryBytes") -}}
{{- end -}}
{{- end -}}
