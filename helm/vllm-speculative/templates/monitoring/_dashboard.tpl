{{/* Grafana's JSON of a dashboard in dashboards/. Arguments: list of root, name. */}}
{{- define "vllm-speculative.dashboard" -}}
{{- $root := index . 0 -}}
{{- $panels := list -}}
{{- $x := 0 -}}
{{- $y := 0 -}}
{{- $height := 0 -}}
{{- $in := "namespace=~\"$namespace\", release=~\"$release\", engine=~\"$engine\"" -}}
{{- $router := "namespace=~\"$namespace\", app_kubernetes_io_instance=~\"$release\"" -}}
{{- $dashboard := $root.Files.Get (printf "dashboards/%s.yaml" (index . 1)) | fromYaml -}}
{{- range $i, $panel := $dashboard.panels -}}
{{- $width := int $panel.width -}}
{{- if gt (add $x $width) 24 -}}
{{- $x = 0 -}}
{{- $y = add $y $height -}}
{{- end -}}
{{- $height = ternary 4 8 (eq "stat" (default "" $panel.kind)) -}}
{{- $targets := list -}}
{{- range $n, $query := $panel.queries -}}
{{- $targets = append $targets (dict "refId" (printf "%c" (add 65 $n)) "expr" ($query.expr | replace "@in@" $in | replace "@router@" $router) "legendFormat" $query.legend "datasource" (dict "type" "prometheus" "uid" "${datasource}")) -}}
{{- end -}}
{{- $panels = append $panels (dict
  "id" (add1 $i)
  "type" (default "timeseries" $panel.kind)
  "title" $panel.title
  "description" (default "" $panel.description)
  "gridPos" (dict "x" $x "y" $y "w" $width "h" $height)
  "datasource" (dict "type" "prometheus" "uid" "${datasource}")
  "fieldConfig" (dict "defaults" (dict "unit" $panel.unit "min" 0) "overrides" list)
  "targets" $targets
) -}}
{{- $x = add $x $width -}}
{{- end -}}
{{- $known := "vllm_speculative:pods_up:sum" -}}
{{- $variables := list (dict "name" "datasource" "type" "datasource" "query" "prometheus") -}}
{{- range $variable := list
  (list "namespace" $known $root.Release.Namespace)
  (list "release" (printf "%s{namespace=~\"$namespace\"}" $known) $root.Release.Name)
  (list "engine" (printf "%s{namespace=~\"$namespace\", release=~\"$release\"}" $known) "$__all")
-}}
{{- $label := index $variable 0 -}}
{{- $value := index $variable 2 -}}
{{- $query := printf "label_values(%s, %s)" (index $variable 1) $label -}}
{{- $current := dict "text" (ternary "All" $value (eq $value "$__all")) "value" $value -}}
{{- $variables = append $variables (dict "name" $label "type" "query" "query" $query "definition" $query "datasource" (dict "type" "prometheus" "uid" "${datasource}") "refresh" 2 "includeAll" true "multi" true "sort" 1 "current" $current) -}}
{{- end -}}
{{- toPrettyJson (dict
  "uid" (printf "vllm-%s-%s" (index . 1) (printf "%s/%s" $root.Release.Namespace $root.Release.Name | sha256sum | trunc 12))
  "title" (printf "%s: %s" $root.Release.Name $dashboard.title)
  "tags" (list "vllm" "speculative-decoding")
  "schemaVersion" 39
  "editable" false
  "refresh" "30s"
  "time" (dict "from" "now-3h" "to" "now")
  "templating" (dict "list" $variables)
  "panels" $panels
) -}}
{{- end -}}
