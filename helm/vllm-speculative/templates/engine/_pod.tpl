{{/* Template of an engine pod. Argument: engine. */}}
{{- define "vllm-speculative.pod" -}}
{{- $e := .v.engine -}}
{{- $arguments := dict -}}
{{- include "vllm-speculative.arguments" (dict "engine" . "out" $arguments) -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" . "out" $models) -}}
{{- $image := include "vllm-speculative.engineImage" . -}}
metadata:
  labels:
    {{- include "vllm-speculative.podLabels" . | nindent 4 }}
    {{- if .routed }}
    vllm-speculative/routed: "true"
    {{- end }}
    {{- with $e.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    vllm-speculative/engine-version: {{ .version | quote }}
    vllm-speculative/runner: {{ include "vllm-speculative.runner" . }}
    vllm-speculative/accelerator: {{ .v.accelerator.type }}
    vllm-speculative/model: {{ $e.model.name | quote }}
    {{- with $e.model.revision }}
    vllm-speculative/model-revision: {{ . | quote }}
    {{- end }}
    vllm-speculative/speculative-method: {{ ternary .v.speculative.method "none" .v.speculative.enabled }}
    {{- if and .v.speculative.enabled .v.speculative.model.name }}
    vllm-speculative/draft-model: {{ .v.speculative.model.name | quote }}
    {{- with .v.speculative.model.revision }}
    vllm-speculative/draft-model-revision: {{ . | quote }}
    {{- end }}
    {{- end }}
    {{- with $e.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ .fullname }}
  automountServiceAccountToken: false
  # A Service called vllm would otherwise set VLLM_PORT, which the engine reads as its own.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "vllm-speculative.graceSeconds" . }}
  {{- with include "vllm-speculative.imagePullSecrets" .root }}{{ . | nindent 2 }}{{ end }}
  {{- with $e.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- include "vllm-speculative.podSecurityContext" .root | nindent 4 }}
  {{- with include "vllm-speculative.nodeSelector" . }}
  nodeSelector:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with include "vllm-speculative.tolerations" . }}
  tolerations:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with $e.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $e.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $models.fetch }}
  initContainers:
    {{- include "vllm-speculative.prefetch" (dict "engine" . "models" $models "image" $image) | nindent 4 }}
  {{- end }}
  containers:
    - name: engine
      image: {{ $image }}
      imagePullPolicy: {{ $e.image.pullPolicy }}
      command: {{ (index .facts.engines.command (include "vllm-speculative.row" (list .facts.engines.command .version) | int)).argv | toJson }}
      args:
        {{- range $arguments.args }}
        - {{ include "vllm-speculative.argument" . }}
        {{- end }}
      env:
        {{- include "vllm-speculative.environment" (dict "engine" . "argumentsEnv" $arguments.env "remote" $models.remote) | trim | nindent 8 }}
      ports:
        - name: http
          containerPort: 8000
      {{- include "vllm-speculative.probes" . | nindent 6 }}
      lifecycle:
        preStop:
          sleep:
            seconds: {{ int64 .v.shutdown.preStopSeconds }}
      resources:
        {{- include "vllm-speculative.resources" . | nindent 8 }}
      securityContext:
        {{- include "vllm-speculative.containerSecurityContext" . | nindent 8 }}
      volumeMounts:
        - {name: models, mountPath: {{ .v.modelCache.mountPath }}, readOnly: {{ not $models.remote }}}
        - {name: scratch, mountPath: /home/engine}
        - {name: tmp, mountPath: /tmp}
        - {name: shm, mountPath: /dev/shm}
  volumes:
    {{- include "vllm-speculative.modelVolume" . | nindent 4 }}
    - name: scratch
      emptyDir:
        sizeLimit: {{ include "vllm-speculative.quantity" $e.scratchSize }}
    - name: tmp
      emptyDir:
        sizeLimit: {{ include "vllm-speculative.quantity" $e.scratchSize }}
    - name: shm
      emptyDir:
        medium: Memory
        sizeLimit: {{ include "vllm-speculative.quantity" .v.sharedMemory.size }}
{{- end -}}

{{- define "vllm-speculative.engineImage" -}}
{{- $image := .v.engine.image -}}
{{- $repository := default (ternary "vllm/vllm-openai-cpu" "vllm/vllm-openai" (eq .v.accelerator.type "cpu")) $image.repository -}}
{{- include "vllm-speculative.image" (dict "root" .root "repository" $repository "tag" (default (printf "v%s" .version) $image.tag) "digest" $image.digest) -}}
{{- end -}}

{{/* Seconds between the request to stop and the kill: the sleep, the engine's own wait for requests, its exit. Argument: engine. */}}
{{- define "vllm-speculative.graceSeconds" -}}
{{- with .v.shutdown }}{{ add (int64 .preStopSeconds) (int64 .timeoutSeconds) (int64 .marginSeconds) }}{{ end -}}
{{- end -}}
