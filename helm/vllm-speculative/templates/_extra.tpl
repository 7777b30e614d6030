{{/* Refuses names among the extra parts of a pod that its own parts have. Argument: root. */}}
{{- define "vllm-speculative.checkExtra" -}}
{{- $values := .Values -}}
{{- $containers := list "engine" "kserve-container" "main" "prefetch" "await-models" -}}
{{- $taken := dict "extraVolumes" (list "models" "scratch" "tmp" "shm" "ca" "gke-gcsfuse-cache") "extraContainers" $containers "extraInitContainers" $containers -}}
{{- range $path, $names := $taken -}}
{{- range $i, $each := get $values $path -}}
{{- if has $each.name $names -}}
{{- include "vllm-speculative.fail" (list "SD470" (printf "%s[%d].name" $path $i) (printf "the pod has one called %s already" $each.name) "another name") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
