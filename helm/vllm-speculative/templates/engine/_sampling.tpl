{{/* How drafts are sampled and accepted: refuses what the engine refuses, or takes and does not do. Argument: engine. */}}
{{- define "vllm-speculative.checkSampling" -}}
{{- $engine := . -}}
{{- $s := .v.speculative -}}
{{- $at := printf "%sspeculative" .path -}}
{{- $k := int64 (default 0 $s.numTokens) -}}
{{- range $value := list "speculative.draftSampling" "speculative.rejectionSampling" -}}
{{- $argument := get $engine.facts.arguments $value -}}
{{- $index := include "vllm-speculative.row" (list $argument.rows $engine.version) -}}
{{- if ne $index "" -}}
{{- $choices := (index $argument.rows (int $index)).choices -}}
{{- $choice := get $s (trimPrefix "speculative." $argument.value) -}}
{{- if and $choice (not (hasKey $choices $choice)) -}}
{{- include "vllm-speculative.fail" (list "SD164" (printf "%s%s" $engine.path $argument.value) (printf "vLLM %s has no %s" $engine.version $choice) (printf "%s, or another engine version" (keys $choices | sortAlpha | join ", "))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $of := dict "typical" "typical" "synthetic" "synthetic" "fly" "fly" -}}
{{- range $key, $value := get $s $name -}}
{{- if and (not (kindIs "invalid" $value)) (not (and (kindIs "slice" $value) (empty $value))) (ne $s.rejectionSampling $of) -}}
{{- include "vllm-speculative.fail" (list "SD266" (printf "%s.%s.%s" $at $name $key) (printf "it tunes rejectionSampling %s, which is %s" $of (default "not set" $s.rejectionSampling)) (printf "speculative.rejectionSampling %s, or leave it unset" $of)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $s.draftSampling (eq $s.rejectionSampling "synthetic") (semverCompare "<0.21.0" (regexFind "^[0-9]+[.][0-9]+[.][0-9]+" .version)) -}}
{{- include "vllm-speculative.fail" (list "SD266" (printf "%s.draftSampling" $at) (printf "vLLM %s has one field for it and for rejectionSampling synthetic" .version) "one of the two") -}}
{{- end -}}
{{- if $s.heterogeneousVocab -}}
{{- if eq $s.draftSampling "probabilistic" -}}
{{- include "vllm-speculative.fail" (list "SD266" (printf "%s.draftSampling" $at) "with heterogeneousVocab drafts are sampled greedily alone" "greedy, or leave it unset") -}}
{{- end -}}
{{- if $s.localArgmaxReduction -}}
{{- include "vllm-speculative.fail" (list "SD266" (printf "%s.localArgmaxReduction" $at) "heterogeneousVocab needs all logits of the draft, which it leaves out" "one of the two") -}}
{{- end -}}
{{- end -}}
{{- if and $s.localArgmaxReduction (eq $s.draftSampling "probabilistic") -}}
{{- include "vllm-speculative.fail" (list "SD266" (printf "%s.localArgmaxReduction" $at) "probabilistic drafts need all logits, which it leaves out" "draftSampling greedy, or leave it off") -}}
{{- end -}}
{{- if and $s.disablePaddedDrafterBatch $s.parallelDrafting -}}
{{- include "vllm-speculative.fail" (list "SD266" (printf "%s.disablePaddedDrafterBatch" $at) "parallel drafting needs the padded batch" "one of the two") -}}
{{- end -}}
{{- if and (has $s.rejectionSampling (list "synthetic" "fly")) (not $s.numTokens) -}}
{{- include "vllm-speculative.fail" (list "SD253" (printf "%s.numTokens" $at) (printf "rejectionSampling %s needs the number of tokens to draft" $s.rejectionSampling) "1 or more, for example 3") -}}
{{- end -}}
{{- if eq $s.rejectionSampling "synthetic" }}{{ include "vllm-speculative.checkSynthetic" (list $at $s $k) }}{{ end -}}
{{- if eq $s.rejectionSampling "fly" -}}
{{- if lt $k 2 -}}
{{- include "vllm-speculative.fail" (list "SD268" (printf "%s.numTokens" $at) (printf "%d: rejectionSampling fly looks at decisions that follow" $k) "2 or more") -}}
{{- end -}}
{{- if ge (int64 (default 1 $s.fly.windowSize)) $k -}}
{{- include "vllm-speculative.fail" (list "SD268" (printf "%s.fly.windowSize" $at) (printf "%d is not below speculative.numTokens, which is %d" (int64 $s.fly.windowSize) $k) (printf "at most %d" (sub $k 1))) -}}
{{- end -}}
{{- end -}}
{{- if and $s.dspark.draftTopK (ne 1 (int (default .v.engine.tensorParallelSize $s.draftTensorParallelSize))) -}}
{{- include "vllm-speculative.fail" (list "SD270" (printf "%s.dspark.draftTopK" $at) (printf "it needs a draft on one GPU, and this one is on %d" (int (default .v.engine.tensorParallelSize $s.draftTensorParallelSize))) "speculative.draftTensorParallelSize 1, or leave it unset") -}}
{{- end -}}
{{- end -}}

{{/* Acceptance that is made up, to measure an engine's mechanics. Arguments: list of path, speculative, K. */}}
{{- define "vllm-speculative.checkSynthetic" -}}
{{- $at := printf "%s.synthetic" (index . 0) -}}
{{- $k := index . 2 -}}
{{- $rates := (index . 1).synthetic.acceptanceRates -}}
{{- $length := (index . 1).synthetic.acceptanceLength -}}
{{- if eq (empty $rates) (kindIs "invalid" $length) -}}
{{- include "vllm-speculative.fail" (list "SD267" $at (printf "%s of acceptanceRates and acceptanceLength" (ternary "none" "both" (empty $rates))) "exactly one of them with rejectionSampling synthetic") -}}
{{- end -}}
{{- if and $rates (ne (len $rates) (int $k)) -}}
{{- include "vllm-speculative.fail" (list "SD267" (printf "%s.acceptanceRates" $at) (printf "%d rates for %d drafted tokens" (len $rates) $k) (printf "one rate for each of the %d positions" $k)) -}}
{{- end -}}
{{- $before := 1.0 -}}
{{- range $i, $rate := $rates -}}
{{- if gt (float64 $rate) (float64 $before) -}}
{{- include "vllm-speculative.fail" (list "SD267" (printf "%s.acceptanceRates[%d]" $at $i) (printf "%v is above the rate of the position before, %v" $rate $before) "rates that never rise: each says how often all drafts up to there are accepted") -}}
{{- end -}}
{{- $before = $rate -}}
{{- end -}}
{{- if and (not (kindIs "invalid" $length)) (or (lt (float64 $length) 1.0) (gt (float64 $length) (float64 (add $k 1)))) -}}
{{- include "vllm-speculative.fail" (list "SD267" (printf "%s.acceptanceLength" $at) (printf "%v tokens a step, and one of %d drafts gives 1 to %d" $length $k (add $k 1)) (printf "1 to %d" (add $k 1))) -}}
{{- end -}}
{{- end -}}

{{/*
The runner that a value alone binds the engine to, as text "runner value", empty when none does. Argument: engine.
*/}}
{{- define "vllm-speculative.boundRunner" -}}
{{- $engine := . -}}
{{- $bound := "" -}}
{{- range $row := .facts.engines.limits.valuesOfRunner -}}
{{- if and (eq $bound "") (ne "" (include "vllm-speculative.row" (list (list $row) $engine.version))) -}}
{{- range $entry := $row.values -}}
{{- $parts := splitList "=" $entry -}}
{{- $given := dict -}}
{{- include "vllm-speculative.given" (dict "engine" $engine "argument" (get $engine.facts.arguments (first $parts)) "out" $given) -}}
{{- if and (eq $bound "") (hasKey $given "value") (or (eq (len $parts) 1) (eq (last $parts) (toString $given.value))) }}{{ $bound = printf "%s %s" $row.runner $entry }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $bound -}}
{{- end -}}

{{- define "vllm-speculative.checkValuesOfRunner" -}}
{{- $bound := .bound -}}
{{- $runner := include "vllm-speculative.runner" . -}}
{{- if and $bound (ne $runner (splitList " " $bound | first)) -}}
{{- $value := splitList " " $bound | last -}}
{{- include "vllm-speculative.fail" (list "SD269" (printf "%s%s" .path (splitList "=" $value | first)) (printf "the %s runner of vLLM %s, which %s is for here, does not heed %s" $runner .version .v.speculative.method ($value | replace "=" " ")) (printf "leave it unset; or engine.runner %s with a method that it has%s" (splitList " " $bound | first) (ternary ", on GPUs" "" (eq .v.accelerator.type "cpu")))) -}}
{{- end -}}
{{- end -}}
