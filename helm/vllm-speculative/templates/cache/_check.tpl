{{/* Refuses a cache in which the engine would not find its models. Argument: engine. */}}
{{- define "vllm-speculative.checkCache" -}}
{{- $cache := .v.modelCache -}}
{{- $pvc := $cache.pvc -}}
{{- $path := printf "%smodelCache" .path -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" . "out" $models) -}}
{{- if eq $cache.type "pvc" -}}
{{- if and (eq $pvc.accessMode "ReadOnlyMany") (or $models.fetch $models.remote) -}}
{{- include "vllm-speculative.fail" (list "SD461" (printf "%s.pvc.accessMode" $path) "a ReadOnlyMany claim cannot be written, and the models are to be fetched into it" "ReadWriteMany, or huggingFace.offline true with the models in the claim") -}}
{{- end -}}
{{- $shared := has $pvc.accessMode (list "ReadWriteMany" "ReadOnlyMany") -}}
{{- if and (not $shared) (or $pvc.existingClaim (eq .v.engine.workload "Deployment")) (or (gt (int .v.engine.replicas) 1) .v.baseline.enabled) -}}
{{- include "vllm-speculative.fail" (list "SD460" (printf "%s.pvc.accessMode" $path) (printf "a %s claim cannot be shared by several pods" $pvc.accessMode) "ReadWriteMany, or engine.workload StatefulSet without existingClaim, which makes a claim for each pod") -}}
{{- end -}}
{{- end -}}
{{- range $type, $key := dict "gcsFuse" "bucket" "bootDisk" "diskImage" "image" "reference" -}}
{{- if and (eq $cache.type $type) (not (get (get $cache $type) $key)) -}}
{{- include "vllm-speculative.fail" (list "SD462" (printf "%s.%s.%s" $path $type $key) (printf "modelCache.type is %s, and this is empty" $type) (get (dict "gcsFuse" "the name of the bucket" "bootDisk" "the name of the disk image" "image" "an OCI image, name and tag or digest") $type)) -}}
{{- end -}}
{{- end -}}
{{- if and (or (has $cache.type (list "gcsFuse" "bootDisk")) (and (eq $cache.type "image") $cache.image.preloaded.diskImage)) (ne .root.Values.cloud "gke") -}}
{{- include "vllm-speculative.fail" (list "SD463" (printf "%s.%s" $path (ternary "image.preloaded.diskImage" "type" (eq $cache.type "image"))) (printf "cloud is %s, and this is GKE's" .root.Values.cloud) "cloud gke, or modelCache.type emptyDir, hostPath or pvc") -}}
{{- end -}}
{{- if and (include "vllm-speculative.cacheIsReadOnly" .) (or $models.fetch $models.remote) -}}
{{- include "vllm-speculative.fail" (list "SD464" (printf "%shuggingFace.offline" .path) (printf "a cache of type %s cannot be written, and the models are to be fetched into it" $cache.type) (printf "huggingFace.offline true, with the models under %s/hub or at a path of their own" $cache.mountPath)) -}}
{{- end -}}
{{- if and (eq $cache.type "image") (semverCompare "<1.33.0-0" .root.Capabilities.KubeVersion.Version) -}}
{{- include "vllm-speculative.fail" (list "SD465" (printf "%s.type" $path) (printf "Kubernetes %s does not mount images as volumes" .root.Capabilities.KubeVersion.Version) "Kubernetes 1.33 (helm template: --kube-version 1.33.0), or another type") -}}
{{- end -}}
{{- if and (eq $cache.type "image") $cache.image.preloaded.diskImage (not $cache.image.preloaded.project) -}}
{{- include "vllm-speculative.fail" (list "SD471" (printf "%s.image.preloaded.project" $path) "the label of the nodes is made of disk image and project, and this is empty" "the project of the disk image") -}}
{{- end -}}
{{- if and $cache.hostPath.prepare.enabled (ne $cache.type "hostPath") -}}
{{- include "vllm-speculative.fail" (list "SD469" (printf "%s.hostPath.prepare.enabled" $path) (printf "modelCache.type is %s, so nothing would use the disks" $cache.type) "modelCache.type hostPath") -}}
{{- end -}}
{{- if and $cache.hostPath.prepare.enabled (not (hasPrefix (printf "%s/" $cache.hostPath.prepare.mountPath) $cache.hostPath.path)) -}}
{{- include "vllm-speculative.fail" (list "SD468" (printf "%s.hostPath.path" $path) (printf "%s does not lie in %s, where the disks are mounted" $cache.hostPath.path $cache.hostPath.prepare.mountPath) (printf "for example %s/models" $cache.hostPath.prepare.mountPath)) -}}
{{- end -}}
{{- if and $models.fetch (eq $cache.prefetch.mode "job") -}}
{{- if not (or (eq $cache.type "gcsFuse") (and (eq (include "vllm-speculative.claim" .) "shared") (eq $pvc.accessMode "ReadWriteMany"))) -}}
{{- include "vllm-speculative.fail" (list "SD466" (printf "%s.prefetch.mode" $path) "a Job fetches into one cache, and the pods would look into others" "modelCache.type gcsFuse, or pvc with accessMode ReadWriteMany; or mode init") -}}
{{- end -}}
{{- range $models.fetch -}}
{{- if not (regexMatch "^[0-9a-f]{40}$" .revision) -}}
{{- include "vllm-speculative.fail" (list "SD467" (printf "%s.prefetch.mode" $path) (printf "%s is asked for at %q, and pods wait for the commit's directory" .repository .revision) "the commit's 40 hexadecimal digits, or mode init") -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
