{{/* Labels of every pod of the release. Argument: root. */}}
{{- define "vllm-speculative.releasePods" -}}
app.kubernetes.io/name: vllm-speculative
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Peer: pods of the release with one of the components. Arguments: list of root, components. */}}
{{- define "vllm-speculative.componentPeer" -}}
- podSelector:
    matchLabels:
      {{- include "vllm-speculative.releasePods" (index . 0) | nindent 6 }}
    matchExpressions:
      - {key: app.kubernetes.io/component, operator: In, values: [{{ index . 1 | join ", " }}]}
{{- end -}}

{{/* TCP ports, one a line. Argument: list. */}}
{{- define "vllm-speculative.ports" -}}
{{- range . }}
- {protocol: TCP, port: {{ int64 . }}}
{{- end }}
{{- end -}}

{{/* Ingress rule: the peers may reach the ports. Arguments: list of peers, ports. No rule without peers, which would mean everybody. */}}
{{- define "vllm-speculative.from" -}}
{{- if index . 0 -}}
- from:
    {{- toYaml (index . 0) | nindent 4 }}
  ports:
    {{- include "vllm-speculative.ports" (index . 1) | trim | nindent 4 }}
{{- end }}
{{- end -}}

{{/* Egress rule: the peers may be reached at the ports. Arguments: list of peers, ports. */}}
{{- define "vllm-speculative.to" -}}
- to:
    {{- toYaml (index . 0) | nindent 4 }}
  ports:
    {{- include "vllm-speculative.ports" (index . 1) | trim | nindent 4 }}
{{- end -}}

{{/* Egress rule: names are resolved. Argument: root. */}}
{{- define "vllm-speculative.toDns" -}}
- to:
    {{- toYaml .Values.networkPolicy.dns | nindent 4 }}
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end -}}

{{/* Egress rule: models are fetched, and buckets are read with the credentials of the node's metadata server. Argument: engine. */}}
{{- define "vllm-speculative.toHub" -}}
{{- $hub := .root.Values.networkPolicy.hub -}}
{{ include "vllm-speculative.to" (list $hub.peers $hub.ports) }}
{{- end -}}

{{/* Egress rules of a pod that mounts a bucket: Cloud Storage, and the credentials of GKE's metadata server. Argument: engine. */}}
{{- define "vllm-speculative.toBucket" -}}
{{- if eq .v.modelCache.type "gcsFuse" -}}
- to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 169.254.0.0/16]}}]
  ports:
    - {protocol: TCP, port: 443}
- to: [{ipBlock: {cidr: 169.254.169.252/32}}, {ipBlock: {cidr: 169.254.169.254/32}}]
  ports:
    {{- include "vllm-speculative.ports" (list 80 987 988) | trim | nindent 4 }}
{{- end -}}
{{- end -}}
