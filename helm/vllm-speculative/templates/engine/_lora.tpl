{{/* Refuses adapters that the engine cannot load, or not together with speculation. Argument: engine. */}}
{{- define "vllm-speculative.checkLora" -}}
{{- $engine := . -}}
{{- $at := printf "%slora" .path -}}
{{- $lora := .v.lora -}}
{{- $limits := .facts.engines.limits -}}
{{- if not $lora.enabled -}}
{{- range $key, $value := $lora -}}
{{- if and (ne $key "enabled") (not (empty $value)) -}}
{{- include "vllm-speculative.fail" (list "SD166" (printf "%s.%s" $at $key) "it would do nothing: LoRA is off" "lora.enabled true, or leave it unset") -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $s := .v.speculative -}}
{{- if and $s.enabled (not $s.allowUnsupported) -}}
{{- if ne "" (include "vllm-speculative.row" (list $limits.lora .version)) -}}
{{- include "vllm-speculative.fail" (list "SD163" (printf "%s.enabled" $at) (printf "vLLM %s does not speculate with LoRA adapters" .version) "lora.enabled false, speculative.enabled false, or vLLM 0.11.1 or later") -}}
{{- end -}}
{{- if $s.dspark.adaptiveVerification -}}
{{- include "vllm-speculative.fail" (list "SD163" (printf "%s.enabled" $at) "adaptive verification does not know which adapter a trimmed batch belongs to" "lora.enabled false, or speculative.dspark.adaptiveVerification false") -}}
{{- end -}}
{{- end -}}
{{- $ranks := list -}}
{{- $index := include "vllm-speculative.row" (list $limits.loraRanks .version) -}}
{{- range (index $limits.loraRanks (int $index)).ranks }}{{ $ranks = append $ranks (int .) }}{{ end -}}
{{- if and $lora.maxRank (not (has (int $lora.maxRank) $ranks)) -}}
{{- include "vllm-speculative.fail" (list "SD167" (printf "%s.maxRank" $at) (printf "vLLM %s takes no rank of %d" .version (int $lora.maxRank)) (printf "one of %s" (join ", " $ranks))) -}}
{{- end -}}
{{- if and $lora.maxCpuLoras (lt (int $lora.maxCpuLoras) (int (default 1 $lora.maxLoras))) -}}
{{- include "vllm-speculative.fail" (list "SD169" (printf "%s.maxCpuLoras" $at) (printf "%d is below maxLoras, which is %d" (int $lora.maxCpuLoras) (int (default 1 $lora.maxLoras))) "at least lora.maxLoras") -}}
{{- end -}}
{{- $names := list (default .v.engine.model.name .v.engine.model.servedName) -}}
{{- range $i, $module := $lora.modules -}}
{{- if has $module.servedName $names -}}
{{- include "vllm-speculative.fail" (list "SD170" (printf "%s.modules[%d].servedName" $at $i) (printf "%q is the name of another model of this engine" $module.servedName) "a name of its own") -}}
{{- end -}}
{{- $names = append $names $module.servedName -}}
{{- include "vllm-speculative.checkModel" (list $engine (printf "lora.modules[%d]" $i) $module) -}}
{{- if not (or (hasPrefix "/" $module.name) $engine.v.huggingFace.offline $engine.v.modelCache.prefetch.enabled) -}}
{{- include "vllm-speculative.fail" (list "SD171" (printf "%s.modules[%d].name" $at $i) (printf "the engine would fetch %s itself, and cannot be told its revision" $module.name) "modelCache.prefetch.enabled true, or a path in the container") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
