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
{{- $_ := set $env "HF_HUB_CACHE" (printf "%s/hub" $engine.v.modelCache.mountPath) -}}
{{- if not .remote -}}
{{- $_ := set $env "HF_HUB_OFFLINE" "1" -}}
{{- $_ := set $env "TRANSFORMERS_OFFLINE" "1" -}}
{{- end -}}
{{- if $engine.v.engine.runner -}}
{{- $row := include "vllm-speculative.runnerRow" $engine | fromYaml -}}
{{- with $row.env }}{{ $_ := set $env . (ternary "1" "0" (eq $engine.v.engine.runner (last $row.choice))) }}{{ end -}}
{{- end -}}
{{- $env = merge (deepCopy .argumentsEnv) $env -}}
{{- range $engine.v.engine.extraEnv }}{{ $_ := unset $env .name }}{{ end -}}
{{- range $name, $value := $env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- if and .remote $engine.v.huggingFace.tokenSecret.name }}
{{ include "vllm-speculative.tokenEnv" $engine }}
{{- end }}
{{- with $engine.v.engine.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The Hub's token, out of a Secret and nowhere else. Argument: engine. */}}
{{- define "vllm-speculative.tokenEnv" -}}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .v.huggingFace.tokenSecret.name }}
      key: {{ .v.huggingFace.tokenSecret.key }}
{{- end -}}
