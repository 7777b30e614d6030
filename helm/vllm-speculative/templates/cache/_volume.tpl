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
    type: {{ $cache.hostPath.type }}
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

{{/*
Init container that fetches target and draft at their revisions. It alone holds the token; the engine then runs offline.
Arguments: dict engine, models, image.
*/}}
{{- define "vllm-speculative.prefetch" -}}
{{- $engine := .engine -}}
- name: prefetch
  image: {{ .image }}
  imagePullPolicy: {{ $engine.v.engine.image.pullPolicy }}
  command:
    - python3
    - -c
    - {{ include "vllm-speculative.argument" ($engine.root.Files.Get "files/prefetch.py") }}
  args:
    {{- range .models.fetch }}
    {{- range list .repository .revision }}
    - {{ include "vllm-speculative.argument" . }}
    {{- end }}
    {{- end }}
  env:
    - {name: HOME, value: /home/engine}
    - {name: USER, value: engine}
    - {name: LOGNAME, value: engine}
    - {name: HF_HOME, value: /home/engine/.cache/huggingface}
    - {name: HF_HUB_CACHE, value: {{ $engine.v.modelCache.mountPath }}/hub}
    {{- if $engine.v.huggingFace.tokenSecret.name }}
    {{- include "vllm-speculative.tokenEnv" $engine | nindent 4 }}
    {{- end }}
  resources:
    {{- include "vllm-speculative.quantities" $engine.v.modelCache.prefetch.resources | nindent 4 }}
  securityContext:
    {{- include "vllm-speculative.containerSecurityContext" . | nindent 4 }}
  volumeMounts:
    - {name: models, mountPath: {{ $engine.v.modelCache.mountPath }}}
    - {name: scratch, mountPath: /home/engine}
    - {name: tmp, mountPath: /tmp}
{{- end -}}
