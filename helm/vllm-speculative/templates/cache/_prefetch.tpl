{{/*
Container that fetches target and draft at their revisions, or in an engine pod beside a prefetch Job waits until they are
there. Only the one that fetches has the token; the engine then runs offline.
Arguments: dict engine, models, image, wait (bool).
*/}}
{{- define "vllm-speculative.prefetch" -}}
{{- $engine := .engine -}}
{{- $mount := $engine.v.modelCache.mountPath -}}
- name: {{ ternary "await-models" "prefetch" .wait }}
  image: {{ .image }}
  imagePullPolicy: {{ $engine.v.engine.image.pullPolicy }}
  command:
    - python3
    - -c
    - {{ include "vllm-speculative.argument" ($engine.root.Files.Get (ternary "files/await.py" "files/prefetch.py" .wait)) }}
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
    - {name: HF_HUB_CACHE, value: {{ $mount }}/hub}
    {{- if not .wait }}
    {{- range $name, $value := include "vllm-speculative.mirrorEnv" $engine.root | fromYaml }}
    - {name: {{ $name }}, value: {{ $value | quote }}}
    {{- end }}
    {{- if $engine.v.huggingFace.tokenSecret.name }}
    {{- include "vllm-speculative.tokenEnv" $engine | nindent 4 }}
    {{- end }}
    {{- end }}
  resources:
    {{- include "vllm-speculative.quantities" $engine.v.modelCache.prefetch.resources | nindent 4 }}
  securityContext:
    {{- include "vllm-speculative.containerSecurityContext" . | nindent 4 }}
  volumeMounts:
    - {name: models, mountPath: {{ $mount }}{{ if .wait }}, readOnly: true{{ end }}}
    - {name: scratch, mountPath: /home/engine}
    - {name: tmp, mountPath: /tmp}
    {{- with include "vllm-speculative.caMount" $engine.root }}{{ . | nindent 4 }}{{ end }}
{{- end -}}

{{/* Variables with which models come from a mirror, and its certificate is trusted, as a YAML map. Argument: root. */}}
{{- define "vllm-speculative.mirrorEnv" -}}
{{- $env := dict -}}
{{- with .Values.global.modelMirror }}{{ $_ := set $env "HF_ENDPOINT" . }}{{ end -}}
{{- if .Values.global.caBundle.configMap -}}
{{- range list "SSL_CERT_FILE" "REQUESTS_CA_BUNDLE" "CURL_CA_BUNDLE" }}{{ $_ := set $env . "/etc/vllm-speculative/ca/ca.crt" }}{{ end -}}
{{- end -}}
{{- toYaml $env -}}
{{- end -}}

{{- define "vllm-speculative.caMount" -}}
{{- if .Values.global.caBundle.configMap -}}
- {name: ca, mountPath: /etc/vllm-speculative/ca, readOnly: true}
{{- end -}}
{{- end -}}

{{- define "vllm-speculative.caVolume" -}}
{{- with .Values.global.caBundle -}}
{{- if .configMap -}}
- name: ca
  configMap:
    name: {{ .configMap }}
    items: [{key: {{ .key }}, path: ca.crt}]
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Name of the Job that fetches an engine's models: another one for other models or another image, and at most 63 characters,
since pods carry it as a label. Arguments: dict engine, models, image.
*/}}
{{- define "vllm-speculative.prefetchName" -}}
{{- $what := dict "fetch" .models.fetch "image" .image "resources" .engine.v.modelCache.prefetch.resources "mirror" .engine.root.Values.global.modelMirror -}}
{{- printf "%s-prefetch-%s" (.engine.fullname | trunc 44 | trimSuffix "-") ($what | toJson | sha256sum | trunc 8) -}}
{{- end -}}
