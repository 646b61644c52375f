{{- /*
What the program would refuse of an option's value when its pod starts, beyond the chart's schema. All
of them render nothing.
*/}}
{{- define "lastcall.checkOptions" }}
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
{{- if not (or (get $options "sqs-queue-url") (get $options "ec2-status-poll")) }}
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
{{- $cert := get $given "metrics-cert-file" }}
{{- $key := get $given "metrics-key-file" }}
{{- if and $cert (not $key) }}
{{- fail (printf "%s.options.metrics-cert-file: found it without metrics-key-file, expected both" $part) }}
{{- end }}
{{- if and $key (not $cert) }}
{{- fail (printf "%s.options.metrics-key-file: found it without metrics-cert-file, expected both" $part) }}
{{- end }}
{{- end }}
{{- end }}
