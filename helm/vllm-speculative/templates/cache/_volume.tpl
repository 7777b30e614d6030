{{/* The volume `models`; with a claim for each pod it comes from the StatefulSet's template. Argument: engine. */}}
{{- define "vllm-speculative.modelVolume" -}}
{{- $cache := .v.modelCache -}}
{{- if eq $cache.type "emptyDir" -}}
- name: models
  emptyDir:
    sizeLimit: {{ include "vllm-speculative.quantity" $cache.emptyDir.sizeLimit }}
{{- else if eq $cache.type "hostPath" -}}
- name: models
  hostPath:
    path: {{ $cache.hostPath.path | quote }}
    {{- /* A directory that the DaemonSet makes is waited for: made by the kubelet it would lie on the boot disk. */}}
    type: {{ ternary "Directory" $cache.hostPath.type $cache.hostPath.prepare.enabled }}
{{- else if eq $cache.type "bootDisk" -}}
- name: models
  hostPath:
    path: /mnt/disks/gke-secondary-disks/gke-{{ $cache.bootDisk.diskImage }}-disk
    type: Directory
{{- else if eq $cache.type "image" -}}
- name: models
  image:
    reference: {{ include "vllm-speculative.mirrored" (dict "root" .root "image" $cache.image.reference) }}
    pullPolicy: {{ $cache.image.pullPolicy }}
{{- else if eq $cache.type "gcsFuse" -}}
{{- include "vllm-speculative.gcsFuseVolume" . }}
{{- else if eq (include "vllm-speculative.claim" .) "shared" -}}
- name: models
  persistentVolumeClaim:
    claimName: {{ default .claimName $cache.pvc.existingClaim }}
{{- end -}}
{{- end -}}

{{/* How the claim comes about: "" (none), "shared" (one for all pods) or "each" (one for each pod). Argument: engine. */}}
{{- define "vllm-speculative.claim" -}}
{{- $cache := .v.modelCache -}}
{{- if eq $cache.type "pvc" -}}
{{- if or $cache.pvc.existingClaim (eq .v.engine.workload "Deployment") (has $cache.pvc.accessMode (list "ReadWriteMany" "ReadOnlyMany")) -}}
shared
{{- else -}}
each
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Spec of a claim that the chart makes. Argument: engine. */}}
{{- define "vllm-speculative.claimSpec" -}}
{{- with .v.modelCache.pvc -}}
accessModes: [{{ .accessMode }}]
{{- with .storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ include "vllm-speculative.quantity" .size }}
{{- end -}}
{{- end -}}

{{/* Whether the volume cannot be written, so that it holds the models already: text, empty for no. Argument: engine. */}}
{{- define "vllm-speculative.cacheIsReadOnly" -}}
{{- if has .v.modelCache.type (list "bootDisk" "image") }}yes{{ end -}}
{{- end -}}

{{/* The pod security standard that an engine's pods need, because of their volumes. Argument: engine. */}}
{{- define "vllm-speculative.podSecurityLevel" -}}
{{- ternary "privileged" "restricted" (has .v.modelCache.type (list "hostPath" "bootDisk")) -}}
{{- end -}}

{{/* Annotations of a pod that the cache asks for, as YAML. Argument: engine. */}}
{{- define "vllm-speculative.cacheAnnotations" -}}
{{- if eq .v.modelCache.type "gcsFuse" -}}
{{- with .v.modelCache.gcsFuse.sidecar -}}
gke-gcsfuse/volumes: "true"
gke-gcsfuse/cpu-limit: {{ .cpuLimit | quote }}
gke-gcsfuse/memory-limit: {{ .memoryLimit | quote }}
gke-gcsfuse/ephemeral-storage-limit: {{ .ephemeralStorageLimit | quote }}
{{- end -}}
{{- end -}}
{{- end -}}
