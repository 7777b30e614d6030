{{/* Refuses a speculation that the engine version cannot run or would run otherwise than meant. Argument: engine. */}}
{{- define "vllm-speculative.checkSpeculative" -}}
{{- $s := .v.speculative -}}
{{- $e := .v.engine -}}
{{- $at := printf "%sspeculative" .path -}}
{{- $limits := .facts.engines.limits -}}
{{- $method := get .facts.engines.methods $s.method -}}
{{- if not $method -}}
{{- include "vllm-speculative.fail" (list "SD155" (printf "%s.method" $at) (printf "there is no method %q" $s.method) (printf "one of %s" (keys .facts.engines.methods | sortAlpha | join ", "))) -}}
{{- end -}}
{{- $index := include "vllm-speculative.row" (list $method.rows .version) -}}
{{- if eq $index "" -}}
{{- $can := list -}}
{{- range $name, $other := .facts.engines.methods -}}
{{- if ne "" (include "vllm-speculative.row" (list $other.rows $.version)) }}{{ $can = append $can $name }}{{ end -}}
{{- end -}}
{{- $does := "" -}}
{{- $notRun := default list $method.notRun -}}
{{- with include "vllm-speculative.row" (list $notRun .version) }}{{ $does = printf " (it %s)" (index $notRun (int .)).does }}{{ end -}}
{{- $where := list -}}
{{- range $method.rows }}{{ $where = append $where (printf "from %s%s" .from (ternary (printf " to before %s" (default "" .before)) "" (not (empty .before)))) }}{{ end -}}
{{- include "vllm-speculative.fail" (list "SD155" (printf "%s.method" $at) (printf "vLLM %s cannot run %s%s; it runs %s" .version $s.method $does (join " and " $where)) (printf "one of %s, or another engine version" (join ", " $can))) -}}
{{- end -}}
{{- if $method.needsModel -}}
{{- if not $s.model.name -}}
{{- include "vllm-speculative.fail" (list "SD251" (printf "%s.model.name" $at) (printf "%s needs a draft model or head" $s.method) "org/name of the Hub or a path; or method ngram, which needs none") -}}
{{- end -}}
{{- else if and $s.model.name (not (has $s.method (list "mtp" "dspark"))) -}}
{{- include "vllm-speculative.fail" (list "SD252" (printf "%s.model.name" $at) (printf "%s drafts without a model; %s would do nothing" $s.method $s.model.name) "leave it empty, or method draft_model") -}}
{{- end -}}
{{- if $s.model.name }}{{ include "vllm-speculative.checkModel" (list . "speculative.model" $s.model) }}{{ end -}}
{{- include "vllm-speculative.checkMethodValues" . -}}
{{- include "vllm-speculative.checkTokensOfHead" . -}}
{{- include "vllm-speculative.checkSchedule" . -}}
{{- include "vllm-speculative.checkSampling" . -}}
{{- if not $s.allowUnsupported -}}
{{- $runner := include "vllm-speculative.runner" . -}}
{{- range $other, $methods := (include "vllm-speculative.runnerRow" . | fromYaml).only -}}
{{- if and (has $s.method $methods) (ne $other $runner) -}}
{{- include "vllm-speculative.fail" (list "SD157" (printf "%sengine.runner" $.path) (printf "the %s runner of vLLM %s has no %s" $runner $.version $s.method) (printf "engine.runner %s or empty%s, or another method" $other (ternary ", on GPUs" "" (eq $.v.accelerator.type "cpu")))) -}}
{{- end -}}
{{- end -}}
{{- include "vllm-speculative.checkValuesOfRunner" . -}}
{{- if and (gt (int $e.pipelineParallelSize) 1) (ne "" (include "vllm-speculative.row" (list $limits.pipelineParallel .version))) -}}
{{- include "vllm-speculative.fail" (list "SD160" (printf "%sengine.pipelineParallelSize" .path) (printf "%d stages: vLLM %s does not speculate across pipeline stages" (int $e.pipelineParallelSize) .version) "1, with a larger engine.tensorParallelSize; or speculative.enabled false") -}}
{{- end -}}
{{- include "vllm-speculative.checkDraftParallel" . -}}
{{- end -}}
{{- end -}}

{{/* Values that belong to one method. */}}
{{- define "vllm-speculative.checkMethodValues" -}}
{{- $s := .v.speculative -}}
{{- $at := printf "%sspeculative" .path -}}
{{- $ngram := has $s.method (list "ngram" "ngram_gpu") -}}
{{- range $argument := .facts.engines.arguments -}}
{{- $given := dict -}}
{{- if hasPrefix "speculative." $argument.value }}{{ include "vllm-speculative.given" (dict "engine" $ "argument" $argument "out" $given) }}{{ end -}}
{{- if and (hasKey $given "value") $argument.methods (not (has $s.method $argument.methods)) -}}
{{- include "vllm-speculative.fail" (list "SD254" (printf "%s%s" $.path $argument.value) (printf "%s would do nothing with it; it is for %s" $s.method (join ", " $argument.methods)) (printf "leave it unset, or method %s" (first $argument.methods))) -}}
{{- end -}}
{{- end -}}
{{- $min := $s.promptLookup.min -}}
{{- $max := $s.promptLookup.max -}}
{{- if and $min $max (gt (int64 $min) (int64 $max)) -}}
{{- include "vllm-speculative.fail" (list "SD255" (printf "%s.promptLookup.min" $at) (printf "%d is above max, which is %d" (int64 $min) (int64 $max)) "min at most max") -}}
{{- end -}}
{{- if and $ngram (not $max) (ne "" (include "vllm-speculative.row" (list .facts.engines.limits.promptLookupMaxRequired .version))) -}}
{{- include "vllm-speculative.fail" (list "SD255" (printf "%s.promptLookup.max" $at) (printf "vLLM %s has no default for it" .version) "for example 4") -}}
{{- end -}}
{{- /* Where only max is given the engine takes it as min too; where neither is, its default is below 8. */ -}}
{{- if and $ngram .v.engine.toolCalling.enabled (lt (int64 (coalesce $min $max 1)) 8) -}}
{{- include "vllm-speculative.fail" (list "SD256" (printf "%s.promptLookup.min" $at) "n-gram drafts from short matches corrupt tool calls (vllm-project/vllm#40875)" "8 or more, with max at least that; or another method") -}}
{{- end -}}
{{- if and (eq $s.method "suffix") (not .v.engine.image.hasArcticInference) -}}
{{- include "vllm-speculative.fail" (list "SD257" (printf "%sengine.image.hasArcticInference" .path) "suffix decoding needs the arctic-inference package, which vLLM's own image lacks" "an image that has it, and this value true; or method ngram") -}}
{{- end -}}
{{- if and $s.quantization (ne $s.method "draft_model") -}}
{{- include "vllm-speculative.fail" (list "SD258" (printf "%s.quantization" $at) (printf "%s takes no quantization of its own" $s.method) "leave it empty, or method draft_model") -}}
{{- end -}}
{{- if and $s.maxModelLen .v.engine.maxModelLen (gt (int64 $s.maxModelLen) (int64 .v.engine.maxModelLen)) -}}
{{- include "vllm-speculative.fail" (list "SD259" (printf "%s.maxModelLen" $at) (printf "%d is above the target's %d" (int64 $s.maxModelLen) (int64 .v.engine.maxModelLen)) "at most engine.maxModelLen") -}}
{{- end -}}
{{- end -}}

{{/* K against the layers of a multi-token head, where files/models.yaml knows the target. */}}
{{- define "vllm-speculative.checkTokensOfHead" -}}
{{- $config := (default dict (get .facts.models.models .v.engine.model.name)).config -}}
{{- $layers := int (default 0 (get (default dict $config) "num_nextn_predict_layers")) -}}
{{- $tokens := int (default 0 .v.speculative.numTokens) -}}
{{- if and (eq .v.speculative.method "mtp") (gt $layers 0) (gt $tokens $layers) -}}
{{- $rows := .facts.engines.limits.tokensOfHead -}}
{{- $rule := (index $rows (include "vllm-speculative.row" (list $rows .version) | int)).rule -}}
{{- if or (eq $rule "atMost") (ne 0 (mod $tokens $layers | int)) -}}
{{- include "vllm-speculative.fail" (list "SD265" (printf "%sspeculative.numTokens" .path) (printf "%d, and %s was trained to draft %d; vLLM %s takes %s" $tokens .v.engine.model.name $layers .version (ternary "no more" "its multiples" (eq $rule "atMost"))) (printf "%d" $layers)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.checkSchedule" -}}
{{- $s := .v.speculative -}}
{{- $at := printf "%sspeculative.schedule" .path -}}
{{- $next := 1 -}}
{{- range $i, $step := $s.schedule -}}
{{- if ne (int64 $step.from) (int64 $next) -}}
{{- include "vllm-speculative.fail" (list "SD260" (printf "%s[%d].from" $at $i) (printf "%d: the ranges have to start at 1 and follow each other without gap or overlap" (int64 $step.from)) (printf "%d" (int64 $next))) -}}
{{- end -}}
{{- if lt (int64 $step.to) (int64 $step.from) -}}
{{- include "vllm-speculative.fail" (list "SD260" (printf "%s[%d].to" $at $i) (printf "%d is below from, which is %d" (int64 $step.to) (int64 $step.from)) "to at least from") -}}
{{- end -}}
{{- if and $s.numTokens (gt (int64 $step.tokens) (int64 $s.numTokens)) -}}
{{- include "vllm-speculative.fail" (list "SD261" (printf "%s[%d].tokens" $at $i) (printf "%d is above speculative.numTokens, to which the engine would cut it without a word" (int64 $step.tokens)) (printf "at most %d, or a larger numTokens" (int64 $s.numTokens))) -}}
{{- end -}}
{{- $next = add (int64 $step.to) 1 -}}
{{- end -}}
{{- $keeps := .facts.engines.limits.scheduleMethods -}}
{{- $index := include "vllm-speculative.row" (list $keeps .version) -}}
{{- if and $s.schedule (ne $index "") -}}
{{- $row := index $keeps (int $index) -}}
{{- if and (eq $row.runner (include "vllm-speculative.runner" .)) (not (has $s.method $row.methods)) -}}
{{- include "vllm-speculative.fail" (list "SD264" $at (printf "the %s runner of vLLM %s keeps no schedule with %s" $row.runner .version $s.method) "no schedule, or another runner or method") -}}
{{- end -}}
{{- end -}}
{{- if and $s.schedule (gt (int .v.engine.dataParallelSize) 1) -}}
{{- include "vllm-speculative.fail" (list "SD262" $at "the engine drops a schedule when engine.dataParallelSize is above 1" "dataParallelSize 1 and more replicas, or no schedule") -}}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.checkDraftParallel" -}}
{{- $engine := . -}}
{{- $size := .v.speculative.draftTensorParallelSize -}}
{{- $target := int .v.engine.tensorParallelSize -}}
{{- if $size -}}
{{- $done := false -}}
{{- range $row := .facts.engines.limits.draftTensorParallelSize -}}
{{- if and (not $done) (ne "" (include "vllm-speculative.row" (list (list $row) $engine.version))) (or (kindIs "string" $row.methods) (has $engine.v.speculative.method $row.methods)) -}}
{{- $done = true -}}
{{- $allowed := list -}}
{{- range $row.allowed }}{{ $allowed = append $allowed (ternary $target (int .) (eq (toString .) "target")) }}{{ end -}}
{{- if not (has (int $size) $allowed) -}}
{{- include "vllm-speculative.fail" (list "SD263" (printf "%sspeculative.draftTensorParallelSize" $engine.path) (printf "%d: vLLM %s with method %s and tensorParallelSize %d accepts %s" (int $size) $engine.version $engine.v.speculative.method $target ($allowed | uniq | join " or ")) "leave it unset") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
