{{- /*
What the program would refuse of an option's value when its pod starts, beyond the chart's schema. All
of them render nothing.
*/}}
{{- define "lastcall.checkOptions" }}
{{- $ofController := dict "root" . "part" "controller" }}
{{- $options := .Values.controller.options | default dict }}
{{- $at := "controller.options" }}
{{- with get $options "action-hosts" }}
{{- range splitList "," . }}
{{- $entry := trim . | lower }}
{{- if and $entry (not (regexMatch "^((\\*\\.)?[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?|\\[[0-9a-f:.]+\\])(:[1-9][0-9]{0,4})?$" $entry)) }}
{{- fail (printf "%s.action-hosts: found %q, expected host, host:port or *.domain, without a scheme or a path" $at (trim .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- with get $options "aks-cluster" }}
{{- if not (regexMatch "^[-\\w.()]+/[-\\w]+$" .) }}
{{- fail (printf "%s.aks-cluster: found %q, expected GROUP/NAME" $at .) }}
{{- end }}
{{- end }}
{{- with get $options "aws-managed-tag" }}
{{- if not (regexMatch "^\\s*[^=\\s][^=]{0,127}(=.{0,256})?$" .) }}
{{- fail (printf "%s.aws-managed-tag: found %q, expected KEY or KEY=VALUE" $at .) }}
{{- end }}
{{- if not (or (include "lastcall.mayHave" (merge (dict "name" "sqs-queue-url") $ofController)) (include "lastcall.mayHave" (merge (dict "name" "ec2-status-poll") $ofController))) }}
{{- fail (printf "%s.aws-managed-tag: found it alone, expected sqs-queue-url or ec2-status-poll, too, which it restricts" $at) }}
{{- end }}
{{- end }}
{{- range $name := list "gcp-endpoint" "azure-endpoint" }}
{{- with get $options $name }}
{{- if or (regexMatch "[?#@]" .) (not (regexMatch "^(https://|http://(localhost|\\[::1\\]|127(\\.[0-9]{1,3}){3})(:|/|$))" .)) }}
{{- fail (printf "%s.%s: found %q, expected an https URL, or http on a loopback address, without credentials and query" $at $name .) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $limits := include "lastcall.spanLimits" . | fromJson }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.%s" $at $name) "text" (get $options $name) "least" $limits.least "most" $limits.most) }}
{{- end }}
{{- range $part := list "controller" "agent" }}
{{- $given := (get $.Values $part).options | default dict }}
{{- $of := dict "root" $ "part" $part }}
{{- if and (get $given "metrics-cert-file") (not (include "lastcall.mayHave" (merge (dict "name" "metrics-key-file") $of))) }}
{{- fail (printf "%s.options.metrics-cert-file: found it without metrics-key-file, expected both" $part) }}
{{- end }}
{{- if and (get $given "metrics-key-file") (not (include "lastcall.mayHave" (merge (dict "name" "metrics-cert-file") $of))) }}
{{- fail (printf "%s.options.metrics-key-file: found it without metrics-cert-file, expected both" $part) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Not empty if a part may have the option: from its options, a variable, or a file of options. */}}
{{- define "lastcall.mayHave" -}}
{{- $options := (get .root.Values .part).options | default dict }}
{{- $env := ternary .root.Values.agent.extraEnv .root.Values.extraEnv (eq .part "agent") | default list }}
{{- $names := list }}
{{- if kindIs "map" $env }}{{ $names = keys $env }}{{ else }}
{{- range $env }}{{ $names = append $names .name }}{{ end }}
{{- end }}
{{- $variable := printf "LASTCALL_%s" .name | upper | replace "-" "_" }}
{{- if or (get $options .name) (get $options "config") (has $variable $names) (has "LASTCALL_CONFIG" $names) }}true{{ end }}
{{- end }}
