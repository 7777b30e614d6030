{{/*
A bucket of Cloud Storage, mounted by the sidecar that GKE adds to the pod, and the sidecar's file cache. The files belong
to the pod's user, for gcsfuse knows no other owner. Argument: engine, with `fetches` in the prefetch Job.
*/}}
{{- define "vllm-speculative.gcsFuseVolume" -}}
{{- $fuse := .v.modelCache.gcsFuse -}}
{{- $security := .root.Values.security -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" . "out" $models) -}}
{{- $options := concat $fuse.mountOptions (list (printf "uid=%d" (int64 $security.runAsUser)) (printf "gid=%d" (int64 $security.runAsGroup))) -}}
{{- with $fuse.onlyDir }}{{ $options = append $options (printf "only-dir:%s" .) }}{{ end -}}
- name: models
  csi:
    driver: gcsfuse.csi.storage.gke.io
    readOnly: {{ not (or $models.remote .fetches (and $models.fetch (eq .v.modelCache.prefetch.mode "init"))) }}
    volumeAttributes:
      bucketName: {{ $fuse.bucket }}
      mountOptions: {{ $options | join "," | quote }}
      gcsfuseMetadataPrefetchOnMount: {{ $fuse.metadataPrefetch | quote }}
# GKE's sidecar takes the volume of this name for its file cache.
- name: gke-gcsfuse-cache
  emptyDir:
    {{- with $fuse.cache.medium }}
    medium: {{ . }}
    {{- end }}
    sizeLimit: {{ include "vllm-speculative.quantity" $fuse.cache.sizeLimit }}
{{- end -}}
