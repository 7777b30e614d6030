{{/*
What clients are led to: each router; each engine behind none; or with endpoint pickers each engine's InferencePool.
Arguments: dict root, routers, engines, out. Sets out.backends, a list of dicts: entry (what `traffic.hosts` calls it),
name (of the objects that lead there), kind, service, port, health (path), grace (seconds), hosts.
*/}}
{{- define "vllm-speculative.backends" -}}
{{- $root := .root -}}
{{- $traffic := $root.Values.traffic -}}
{{- $pool := $traffic.inferencePool.enabled -}}
{{- $backends := list -}}
{{- range .routers -}}
{{- $s := $root.Values.shutdown -}}
{{- $grace := add (int64 $s.preStopSeconds) (int64 $s.timeoutSeconds) (int64 $s.marginSeconds) -}}
{{- $backends = append $backends (dict "entry" (default "router" .entry) "name" .fullname "kind" "Service" "service" .fullname "port" (int64 $root.Values.router.service.port) "health" "/readiness" "grace" $grace) -}}
{{- end -}}
{{- range .engines -}}
{{- if and (not .router) (not .baseline) -}}
{{- $backends = append $backends (dict "entry" .name "name" .fullname "kind" (ternary "InferencePool" "Service" $pool) "service" .fullname "port" (int64 8000) "health" "/health" "grace" (include "vllm-speculative.graceSeconds" . | int64)) -}}
{{- end -}}
{{- end -}}
{{- $entries := list -}}
{{- range $backends }}{{ $entries = append $entries .entry }}{{ end -}}
{{- range $backends }}{{ $_ := set . "hosts" list }}{{ end -}}
{{- range $i, $host := $traffic.hosts -}}
{{- $entry := $host.entry -}}
{{- if and (not $entry) (gt (len $entries) 1) -}}
{{- include "vllm-speculative.fail" (list "SD572" (printf "traffic.hosts[%d].entry" $i) (printf "several answer here, and %s does not say which" $host.host) (printf "one of %s" (join ", " $entries))) -}}
{{- end -}}
{{- if and $entry (not (has $entry $entries)) -}}
{{- include "vllm-speculative.fail" (list "SD573" (printf "traffic.hosts[%d].entry" $i) (printf "nothing here is called %q" $entry) (printf "one of %s" (join ", " $entries))) -}}
{{- end -}}
{{- range $backends -}}
{{- if or (not $entry) (eq $entry .entry) }}{{ $_ := set . "hosts" (append .hosts $host.host) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and (not $traffic.hosts) (gt (len $entries) 1) (or $traffic.ingress.enabled $traffic.gateway.enabled) -}}
{{- include "vllm-speculative.fail" (list "SD572" "traffic.hosts" (printf "several answer here: %s" (join ", " $entries)) "a host for each that is to be reached, {host, entry}") -}}
{{- end -}}
{{- $open := list -}}
{{- range $backends }}{{ if or .hosts (not $traffic.hosts) }}{{ $open = append $open . }}{{ end }}{{ end -}}
{{- $_ := set .out "backends" $open -}}
{{- end -}}

{{/* Seconds that Gateway and Ingress wait for the whole of an answer. Argument: root. */}}
{{- define "vllm-speculative.answerSeconds" -}}
{{- $r := .Values.router -}}
{{- default (add (int64 $r.queue.timeoutSeconds) (int64 $r.requestTimeoutSeconds) 30) .Values.traffic.timeoutSeconds | int64 -}}
{{- end -}}

{{/* Refuses traffic that would not arrive. Argument: root. */}}
{{- define "vllm-speculative.checkTraffic" -}}
{{- $t := .Values.traffic -}}
{{- $r := .Values.router -}}
{{- if and $t.timeoutSeconds $r.enabled (lt (int64 $t.timeoutSeconds) (int64 $r.requestTimeoutSeconds)) -}}
{{- include "vllm-speculative.fail" (list "SD574" "traffic.timeoutSeconds" (printf "%d s at the Gateway or Ingress would cut answers for which the router waits %d s" (int64 $t.timeoutSeconds) (int64 $r.requestTimeoutSeconds)) "at least router.requestTimeoutSeconds, or null") -}}
{{- end -}}
{{- if and $t.gateway.enabled (not $t.gateway.parentRefs) -}}
{{- include "vllm-speculative.fail" (list "SD575" "traffic.gateway.parentRefs" "a route without a parent gets no requests" "the Gateway's name, [{name: ..., namespace: ...}]") -}}
{{- end -}}
{{- if and $t.ingress.enabled $t.inferencePool.enabled -}}
{{- include "vllm-speculative.fail" (list "SD576" "traffic.ingress.enabled" "an Ingress cannot ask an endpoint picker" "traffic.gateway, or the router in place of traffic.inferencePool") -}}
{{- end -}}
{{- if and (ne .Values.cloud "gke") (or (eq $t.gke.policies "always") (eq $t.ingress.controller "gce")) -}}
{{- include "vllm-speculative.fail" (list "SD577" (ternary "traffic.gke.policies" "traffic.ingress.controller" (eq $t.gke.policies "always")) (printf "cloud is %s, and this API exists on GKE alone" .Values.cloud) "cloud gke, or leave it out") -}}
{{- end -}}
{{- if and $t.ingress.enabled $t.ingress.tls.secretName (not $t.hosts) -}}
{{- include "vllm-speculative.fail" (list "SD579" "traffic.ingress.tls.secretName" "a certificate, and no host that it is for" "traffic.hosts") -}}
{{- end -}}
{{- end -}}

{{/* Whether GKE's policies are rendered: text, empty for no. Argument: root. */}}
{{- define "vllm-speculative.gkePolicies" -}}
{{- $t := .Values.traffic -}}
{{- if $t.gateway.enabled -}}
{{- if eq $t.gke.policies "always" }}yes
{{- else if and (eq $t.gke.policies "auto") (eq .Values.cloud "gke") (.Capabilities.APIVersions.Has "networking.gke.io/v1/GCPBackendPolicy") }}yes
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of an object in front of the engines. Argument: root. */}}
{{- define "vllm-speculative.trafficLabels" -}}
app.kubernetes.io/name: vllm-speculative
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: traffic
{{ include "vllm-speculative.releaseLabels" . }}
helm.sh/chart: {{ include "vllm-speculative.chart" . }}
{{- end -}}
