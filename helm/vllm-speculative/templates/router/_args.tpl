{{/* Arguments of a router, one element each. Argument: router. */}}
{{- define "vllm-speculative.routerArgs" -}}
{{- $r := .root.Values.router -}}
{{- $args := list
  "--host" "0.0.0.0"
  "--port" "8000"
  "--service-discovery"
  "--service-discovery-namespace" .root.Release.Namespace
  "--service-discovery-port" "8000"
  "--selector"
    "app.kubernetes.io/name=vllm-speculative"
    (printf "app.kubernetes.io/instance=%s" .root.Release.Name)
    "app.kubernetes.io/component=engine"
    (printf "vllm-speculative/routed=%s" .routed)
  "--policy" $r.policy
  "--request-timeout-secs" (toString (int64 $r.requestTimeoutSeconds))
  "--max-concurrent-requests" (toString (int64 $r.maxConcurrentRequests))
  "--queue-size" (toString (int64 $r.queue.size))
  "--queue-timeout-secs" (toString (int64 $r.queue.timeoutSeconds))
  "--health-check-endpoint" "/health"
  "--health-check-interval-secs" (toString (int64 $r.healthCheck.intervalSeconds))
  "--health-check-timeout-secs" (toString (int64 $r.healthCheck.timeoutSeconds))
  "--health-failure-threshold" (toString (int64 $r.healthCheck.failureThreshold))
  "--health-success-threshold" (toString (int64 $r.healthCheck.successThreshold))
  "--prometheus-host" "0.0.0.0"
  "--prometheus-port" "29000"
  "--log-level" $r.logLevel
-}}
{{- if $r.retries.enabled -}}
{{- $args = concat $args (list
  "--retry-max-retries" (toString (int64 $r.retries.max))
  "--retry-initial-backoff-ms" (toString (int64 $r.retries.initialBackoffMs))
  "--retry-max-backoff-ms" (toString (int64 $r.retries.maxBackoffMs))
  "--retry-backoff-multiplier" (include "vllm-speculative.number" $r.retries.backoffMultiplier)
  "--retry-jitter-factor" (include "vllm-speculative.number" $r.retries.jitterFactor)
) -}}
{{- else -}}
{{- $args = append $args "--disable-retries" -}}
{{- end -}}
{{- if $r.circuitBreaker.enabled -}}
{{- $args = concat $args (list
  "--cb-failure-threshold" (toString (int64 $r.circuitBreaker.failureThreshold))
  "--cb-success-threshold" (toString (int64 $r.circuitBreaker.successThreshold))
  "--cb-timeout-duration-secs" (toString (int64 $r.circuitBreaker.timeoutSeconds))
  "--cb-window-duration-secs" (toString (int64 $r.circuitBreaker.windowSeconds))
) -}}
{{- else -}}
{{- $args = append $args "--disable-circuit-breaker" -}}
{{- end -}}
{{- range $args }}
- {{ include "vllm-speculative.argument" . }}
{{- end }}
{{- end -}}
