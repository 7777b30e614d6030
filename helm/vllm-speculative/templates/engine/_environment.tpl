{{/* Environment of the engine container, sorted by name. Arguments: dict engine, argumentsEnv, remote. */}}
{{- define "vllm-speculative.environment" -}}
{{- $engine := .engine -}}
{{- $home := "/home/engine" -}}
{{- /* The root file system is read-only: everything that vLLM and its libraries write has to point at the scratch volume.
       USER and LOGNAME spare getpwuid a lookup of a user that the image does not have. */ -}}
{{- $env := dict
  "HOME" $home
  "USER" "engine"
  "LOGNAME" "engine"
  "XDG_CACHE_HOME" (printf "%s/.cache" $home)
  "XDG_CONFIG_HOME" (printf "%s/.config" $home)
  "VLLM_CACHE_ROOT" (printf "%s/.cache/vllm" $home)
  "VLLM_CONFIG_ROOT" (printf "%s/.config/vllm" $home)
  "TRITON_CACHE_DIR" (printf "%s/.cache/triton" $home)
  "TORCHINDUCTOR_CACHE_DIR" (printf "%s/.cache/torchinductor" $home)
  "NUMBA_CACHE_DIR" (printf "%s/.cache/numba" $home)
  "MPLCONFIGDIR" (printf "%s/.config/matplotlib" $home)
  "OUTLINES_CACHE_DIR" (printf "%s/.cache/outlines" $home)
  "HF_HOME" (printf "%s/.cache/huggingface" $home)
  "VLLM_NO_USAGE_STATS" "1"
  "DO_NOT_TRACK" "1"
-}}
{{- if ne $engine.v.accelerator.type "cpu" -}}
{{- $_ := set $env "CUDA_CACHE_PATH" (printf "%s/.cache/cuda" $home) -}}
{{- $_ := set $env "FLASHINFER_WORKSPACE_BASE" $home -}}
{{- end -}}
{{- if .remote }}{{ $env = merge (include "vllm-speculative.mirrorEnv" $engine.root | fromYaml) $env }}{{ end -}}
{{- $_ := set $env "HF_HUB_CACHE" (printf "%s/hub" $engine.v.modelCache.mountPath) -}}
{{- if not .remote -}}
{{- $_ := set $env "HF_HUB_OFFLINE" "1" -}}
{{- $_ := set $env "TRANSFORMERS_OFFLINE" "1" -}}
{{- end -}}
{{- with include "vllm-speculative.toldRunner" $engine -}}
{{- $row := include "vllm-speculative.runnerRow" $engine | fromYaml -}}
{{- if $row.env }}{{ $_ := set $env $row.env (ternary "1" "0" (eq . (last $row.choice))) }}{{ end -}}
{{- end -}}
{{- $env = merge (deepCopy .argumentsEnv) $env -}}
{{- range $engine.v.engine.extraEnv }}{{ $_ := unset $env .name }}{{ end -}}
{{- range $name, $value := $env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- $own := list -}}
{{- range $engine.v.engine.extraEnv }}{{ $own = append $own .name }}{{ end -}}
{{- if and $engine.root.Values.traffic.apiKeySecret.name (not (has "VLLM_API_KEY" $own)) }}
{{ include "vllm-speculative.apiKeyEnv" $engine.root }}
{{- end }}
{{- if and .remote $engine.v.huggingFace.tokenSecret.name }}
{{ include "vllm-speculative.tokenEnv" $engine }}
{{- end }}
{{- with $engine.v.engine.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The key that clients have to send, out of a Secret: the engine asks for it under /v1, its probes and metrics stay open. Argument: root. */}}
{{- define "vllm-speculative.apiKeyEnv" -}}
- name: VLLM_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.traffic.apiKeySecret.name }}
      key: {{ .Values.traffic.apiKeySecret.key }}
{{- end -}}

{{/* The Hub's token, out of a Secret and nowhere else. Argument: engine. */}}
{{- define "vllm-speculative.tokenEnv" -}}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .v.huggingFace.tokenSecret.name }}
      key: {{ .v.huggingFace.tokenSecret.key }}
{{- end -}}
