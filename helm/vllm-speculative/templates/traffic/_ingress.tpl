{{/*
Annotations with which an Ingress controller neither cuts a long answer nor holds back a stream, as YAML. What is sent
is never sent again: the router knows which requests are safe to repeat. Traefik streams and waits by default; only its
entry point's own readTimeout has to allow long uploads. Arguments: dict root, backend.
*/}}
{{- define "vllm-speculative.ingressAnnotations" -}}
{{- $ingress := .root.Values.traffic.ingress -}}
{{- $seconds := include "vllm-speculative.answerSeconds" .root -}}
{{- $annotations := dict -}}
{{- if eq $ingress.controller "nginx" -}}
{{- $annotations = dict
  "nginx.ingress.kubernetes.io/proxy-read-timeout" $seconds
  "nginx.ingress.kubernetes.io/proxy-send-timeout" $seconds
  "nginx.ingress.kubernetes.io/proxy-buffering" "off"
  "nginx.ingress.kubernetes.io/proxy-request-buffering" "off"
  "nginx.ingress.kubernetes.io/proxy-next-upstream" "off"
  "nginx.ingress.kubernetes.io/proxy-body-size" "64m"
-}}
{{- else if eq $ingress.controller "alb" -}}
{{- /* The load balancer counts silence, not the whole answer: 4000 s is the most it takes. */ -}}
{{- $annotations = dict
  "alb.ingress.kubernetes.io/target-type" "ip"
  "alb.ingress.kubernetes.io/healthcheck-path" .backend.health
  "alb.ingress.kubernetes.io/load-balancer-attributes" (printf "idle_timeout.timeout_seconds=%d" (min 4000 (int64 $seconds)))
  "alb.ingress.kubernetes.io/target-group-attributes" (printf "deregistration_delay.timeout_seconds=%d" (min 3600 (int64 .backend.grace)))
-}}
{{- end -}}
{{- $annotations = merge (deepCopy $ingress.annotations) $annotations -}}
{{- if $annotations }}{{ toYaml $annotations }}{{ end -}}
{{- end -}}

{{/*
Annotations that a Service in front of pods needs for GKE's Ingress, with those of the values. Arguments: dict root, name
(of the Service), annotations.
*/}}
{{- define "vllm-speculative.serviceAnnotations" -}}
{{- $ingress := .root.Values.traffic.ingress -}}
{{- $annotations := dict -}}
{{- if and $ingress.enabled (eq $ingress.controller "gce") -}}
{{- $annotations = dict "cloud.google.com/backend-config" (dict "default" .name | toJson) "cloud.google.com/neg" (dict "ingress" true | toJson) -}}
{{- end -}}
{{- $annotations = merge (deepCopy .annotations) $annotations -}}
{{- if $annotations }}{{ toYaml $annotations }}{{ end -}}
{{- end -}}
