{{/* What NOTES.txt says of ways in, rights and caches. Arguments: dict root, release. */}}
{{- define "vllm-speculative.accessNotes" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
{{- $traffic := $values.traffic -}}
{{- $open := list -}}
{{- range .release.engines -}}
{{- $models := dict -}}
{{- include "vllm-speculative.models" (dict "engine" . "out" $models) -}}
{{- if or $models.remote (and $models.fetch (eq .v.modelCache.prefetch.mode "init")) }}{{ $open = append $open .fullname }}{{ end -}}
{{- end -}}
{{- range .release.engines -}}
{{- if and (ne (include "vllm-speculative.podSecurityLevel" .) "restricted") (not .baseline) }}
Pod security: {{ .fullname }} mounts a directory of the node, which a namespace refuses unless it is labelled
  kubectl label namespace {{ $root.Release.Namespace }} pod-security.kubernetes.io/enforce=privileged
  (hostPath volumes are above baseline; every container still keeps to the restricted standard
  {{- if .v.modelCache.hostPath.prepare.enabled }}, but for {{ .fullname }}-nvme, which is root on the node{{ end }})
{{- end -}}
{{- end -}}
{{- if and (not $values.kserve.enabled) (or $traffic.ingress.enabled $traffic.gateway.enabled) }}
Reached at:
{{- range .release.backends }}
{{- $backend := . }}
{{- range default (list "any host") .hosts }}
  {{ . }}{{ $traffic.paths | first }}  {{ $backend.entry }}
{{- end }}
{{- end }}
  an answer may take {{ include "vllm-speculative.answerSeconds" $root }} s
{{- if and $traffic.gateway.enabled (eq $values.cloud "gke") (not (include "vllm-speculative.gkePolicies" $root)) }}
  GKE's HealthCheckPolicy and GCPBackendPolicy are left out ({{ if eq $traffic.gke.policies "never" }}traffic.gke.policies never{{ else }}this cluster does not offer networking.gke.io/v1{{ end }}): without them GKE cuts an answer after 30 s
{{- end }}
{{- if and $traffic.ingress.enabled (eq $traffic.ingress.controller "other") }}
  traffic.ingress.controller is other: look whether your controller buffers streams, or gives up after a minute
{{- end }}
{{- if and $traffic.ingress.enabled (eq $traffic.ingress.controller "traefik") }}
  Traefik streams, but its entry point's respondingTimeouts.readTimeout has to outlast the upload of a prompt
{{- end -}}
{{- end -}}
{{- if $traffic.apiKeySecret.name }}
Clients send the key of Secret {{ $traffic.apiKeySecret.name }} as a bearer token
{{- end -}}
{{- if $values.networkPolicy.enabled }}
NetworkPolicies deny what is not needed
{{- if $open }}; {{ join ", " $open }} may reach the Hub, because models are fetched in the pod itself: modelCache.prefetch.mode job leaves that to one Job{{ end }}
{{- end -}}
{{- end -}}
