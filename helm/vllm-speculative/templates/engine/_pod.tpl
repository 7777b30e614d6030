{{/* Template of an engine pod. Argument: engine. */}}
{{- define "vllm-speculative.pod" -}}
metadata:
  labels:
    {{- include "vllm-speculative.enginePodLabels" . | nindent 4 }}
  annotations:
    {{- include "vllm-speculative.enginePodAnnotations" . | nindent 4 }}
spec:
  {{- include "vllm-speculative.podSpec" . | nindent 2 }}
{{- end -}}

{{- define "vllm-speculative.enginePodLabels" -}}
{{ include "vllm-speculative.podLabels" . }}
{{- if .routed }}
vllm-speculative/routed: {{ default "true" .entry | quote }}
{{- end }}
{{- with $.v.engine.podLabels }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{- define "vllm-speculative.enginePodAnnotations" -}}
vllm-speculative/engine-version: {{ .version | quote }}
vllm-speculative/runner: {{ include "vllm-speculative.runner" . }}
vllm-speculative/accelerator: {{ .v.accelerator.type }}
vllm-speculative/pod-security: {{ include "vllm-speculative.podSecurityLevel" . }}
vllm-speculative/model: {{ $.v.engine.model.name | quote }}
{{- with $.v.engine.model.revision }}
vllm-speculative/model-revision: {{ . | quote }}
{{- end }}
vllm-speculative/speculative-method: {{ ternary .v.speculative.method "none" .v.speculative.enabled }}
{{- if and .v.speculative.enabled .v.speculative.model.name }}
vllm-speculative/draft-model: {{ .v.speculative.model.name | quote }}
{{- with .v.speculative.model.revision }}
vllm-speculative/draft-model-revision: {{ . | quote }}
{{- end }}
{{- end }}
{{- with include "vllm-speculative.scrapeAnnotations" (list .root "8000" $.v.engine.podAnnotations) }}{{ . | nindent 0 }}{{ end }}
{{- with include "vllm-speculative.cacheAnnotations" . }}{{ . | nindent 0 }}{{ end }}
{{- with $.v.engine.podAnnotations }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{/*
Specification of an engine pod, the same for every workload. Argument: engine; its `container` names the engine's container
where KServe asks for a name, and `handler` is exec where KServe's own template has a preStop command to replace.
*/}}
{{- define "vllm-speculative.podSpec" -}}
{{- $e := .v.engine -}}
{{- $arguments := dict -}}
{{- include "vllm-speculative.arguments" (dict "engine" . "out" $arguments) -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" . "out" $models) -}}
{{- $image := include "vllm-speculative.engineImage" . -}}
serviceAccountName: {{ .fullname }}
automountServiceAccountToken: false
# A Service called vllm would otherwise set VLLM_PORT, which the engine reads as its own.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ include "vllm-speculative.graceSeconds" . }}
{{- with include "vllm-speculative.imagePullSecrets" .root }}{{ . | nindent 0 }}{{ end }}
{{- with $e.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- include "vllm-speculative.podSecurityContext" .root | nindent 2 }}
{{- with include "vllm-speculative.nodeSelector" . }}
nodeSelector:
  {{- . | nindent 2 }}
{{- end }}
{{- with include "vllm-speculative.tolerations" . }}
tolerations:
  {{- . | nindent 2 }}
{{- end }}
{{- with $e.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $e.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or $models.fetch .root.Values.extraInitContainers }}
initContainers:
  {{- with .root.Values.extraInitContainers }}{{ toYaml . | nindent 2 }}{{ end }}
  {{- if $models.fetch }}
  {{- include "vllm-speculative.prefetch" (dict "engine" . "models" $models "image" $image "wait" (eq .v.modelCache.prefetch.mode "job")) | nindent 2 }}
  {{- end }}
{{- end }}
containers:
  - name: {{ default "engine" .container }}
    image: {{ $image }}
    imagePullPolicy: {{ $e.image.pullPolicy }}
    command: {{ (index .facts.engines.command (include "vllm-speculative.row" (list .facts.engines.command .version) | int)).argv | toJson }}
    args:
      {{- range $arguments.args }}
      - {{ include "vllm-speculative.argument" . }}
      {{- end }}
    env:
      {{- include "vllm-speculative.environment" (dict "engine" . "argumentsEnv" $arguments.env "remote" $models.remote) | trim | nindent 6 }}
    ports:
      - name: http
        containerPort: 8000
    {{- include "vllm-speculative.probes" . | nindent 4 }}
    lifecycle:
      preStop:
        {{- if eq (default "" .handler) "exec" }}
        exec: {command: [sleep, {{ int64 .v.shutdown.preStopSeconds | quote }}]}
        {{- else }}
        sleep:
          seconds: {{ int64 .v.shutdown.preStopSeconds }}
        {{- end }}
    resources:
      {{- include "vllm-speculative.resources" . | nindent 6 }}
    securityContext:
      {{- include "vllm-speculative.containerSecurityContext" . | nindent 6 }}
    volumeMounts:
      - {name: models, mountPath: {{ .v.modelCache.mountPath }}, readOnly: {{ not $models.remote }}}
      - {name: scratch, mountPath: /home/engine}
      - {name: tmp, mountPath: /tmp}
      - {name: shm, mountPath: /dev/shm}
      {{- with include "vllm-speculative.caMount" .root }}{{ . | nindent 6 }}{{ end }}
      {{- with .root.Values.extraVolumeMounts }}{{ toYaml . | nindent 6 }}{{ end }}
  {{- with .root.Values.extraContainers }}{{ toYaml . | nindent 2 }}{{ end }}
volumes:
  {{- include "vllm-speculative.modelVolume" . | nindent 2 }}
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
  {{- with include "vllm-speculative.caVolume" .root }}{{ . | nindent 2 }}{{ end }}
  {{- with .root.Values.extraVolumes }}{{ toYaml . | nindent 2 }}{{ end }}
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
