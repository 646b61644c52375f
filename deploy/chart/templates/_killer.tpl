{{- /* Translates values of estafette-gke-preemptible-killer's chart: docs/migrate.md. */}}
{{- define "lastcall.isKiller" -}}
{{- $secret := .Values.secret | default dict }}
{{- $kept := ($secret.googleServiceAccountSecret | default dict).name }}
{{- if or $secret.workloadIdentityServiceAccount $secret.googleServiceAccountKeyfileJson $secret.useGcpServiceAccountAnnotation $kept }}true{{ end }}
{{- end }}

{{- /* The name that the killer's own chart gives to its objects, and to its account. */}}
{{- define "lastcall.killerName" -}}
{{- $name := .Values.nameOverride | default "estafette-gke-preemptible-killer" }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* The content of the Secret that is created for a key file, in base64. */}}
{{- define "lastcall.keyFile" -}}
{{- $secret := .Values.secret | default dict }}
{{- $kept := ($secret.googleServiceAccountSecret | default dict).name }}
{{- if and $secret.googleServiceAccountKeyfileJson (not $secret.workloadIdentityServiceAccount) (not $kept) (not $secret.useGcpServiceAccountAnnotation) }}
{{- ternary $secret.googleServiceAccountKeyfileJson ($secret.googleServiceAccountKeyfileJson | b64enc) ($secret.valuesAreBase64Encoded | default false) }}
{{- end }}
{{- end }}

{{- /* The Secret with the key file: an existing one, or the one that the chart creates. */}}
{{- define "lastcall.keySecret" -}}
{{- $secret := .Values.secret | default dict }}
{{- if not $secret.workloadIdentityServiceAccount }}
{{- with ($secret.googleServiceAccountSecret | default dict).name }}{{ . }}{{ else }}
{{- if include "lastcall.isKiller" . }}{{ include "lastcall.fullname" . }}-credentials{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.keyName" -}}
{{- $kept := (.Values.secret | default dict).googleServiceAccountSecret | default dict }}
{{- ternary ($kept.key | default "service-account-key.json") "service-account-key.json" (ne ($kept.name | default "") "") }}
{{- end }}

{{- /* The killer's own variables, which are translated and not passed on. */}}
{{- define "lastcall.killerVariables" -}}
{{- toJson (list "WHITELIST_HOURS" "BLACKLIST_HOURS" "FILTERS" "DRAIN_TIMEOUT" "INTERVAL" "ESTAFETTE_LOG_FORMAT" "ESTAFETTE_LOG_LEVEL") }}
{{- end }}

{{- /* Those of them that are references, which a template cannot resolve. */}}
{{- define "lastcall.killerHidden" -}}
{{- $hidden := list }}
{{- $limits := list "WHITELIST_HOURS" "BLACKLIST_HOURS" "FILTERS" "DRAIN_TIMEOUT" }}
{{- if not (kindIs "map" .Values.extraEnv) }}
{{- range .Values.extraEnv }}
{{- if and .valueFrom (has .name $limits) }}{{ $hidden = append $hidden .name }}{{ end }}
{{- end }}
{{- end }}
{{- toJson $hidden }}
{{- end }}

{{- define "lastcall.killerSettings" -}}
{{- $extra := .Values.extraEnv }}
{{- $all := dict }}
{{- range $name := include "lastcall.killerVariables" . | fromJsonArray }}
{{- if kindIs "map" $extra }}
{{- if hasKey $extra $name }}{{ $_ := set $all $name (include "lastcall.word" (get $extra $name)) }}{{ end }}
{{- else }}
{{- range $extra }}
{{- if eq .name $name }}{{ $_ := set $all $name (.value | default "") }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $all }}
{{- end }}

{{- /* The drain timeout in seconds. */}}
{{- define "lastcall.killerDrainSeconds" -}}
{{- $settings := include "lastcall.killerSettings" . | fromJson }}
{{- $value := include "lastcall.word" (.Values.drainTimeout | default 300) }}
{{- if and (hasKey .Values "drainTimeout") (eq (include "lastcall.word" .Values.drainTimeout) "0") }}{{ $value = "0" }}{{ end }}
{{- with $settings.DRAIN_TIMEOUT }}{{ $value = . }}{{ end }}
{{- if not (regexMatch "^[0-9]{1,5}$" $value) }}
{{- fail (printf "drainTimeout: found %q, expected a number of seconds such as 300" $value) }}
{{- end }}
{{- if or (eq (atoi $value) 0) (gt (atoi $value) 39600) }}
{{- fail (printf "drainTimeout: found %s, expected 1 to 39600 seconds, since a node has to leave within 12 hours" $value) }}
{{- end }}
{{- atoi $value }}
{{- end }}

{{- /* The killer's hours, such as `09:00 - 12:00, 22:00 - 06:00`, as windows. */}}
{{- define "lastcall.killerWindows" -}}
{{- $time := "([01]?[0-9]|2[0-3]):[0-5][0-9]" }}
{{- $as := . }}
{{- range $index, $span := splitList "," (nospace .hours) }}
{{- if not (regexMatch (printf "^%s-%s$" $time $time) $span) }}
{{- fail (printf "extraEnv.%s: found %q, expected hours such as 09:00 - 12:00, 22:00 - 06:00" $as.name $span) }}
{{- end }}
{{- $ends := splitList "-" $span }}
{{- $from := printf "%05s" (first $ends) | replace " " "0" }}
{{- $to := printf "%05s" (last $ends) | replace " " "0" }}
{{- if eq $from $to }}
{{- fail (printf "extraEnv.%s: found %q, which starts and ends at the same time, expected hours such as 09:00 - 12:00" $as.name $span) }}
{{- end }}
- {name: {{ $as.prefix }}-{{ add1 $index }}, type: {{ $as.type }}, timeZone: UTC, start: {{ $from | quote }}, end: {{ $to | quote }}}
{{- end }}
{{- end }}

{{- /* The killer's filters, such as `pool: a, b; team: web`, as terms of a node selector. */}}
{{- define "lastcall.killerFilters" -}}
{{- range $pair := splitList ";" (nospace .) }}
{{- $parts := splitList ":" $pair }}
{{- $word := "[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?" }}
{{- if not (regexMatch (printf "^([-.a-z0-9]+/)?%s:%s(,%s)*$" $word $word $word) $pair) }}
{{- fail (printf "extraEnv.FILTERS: found %q, expected label filters such as pool: a, b; team: web" $pair) }}
{{- end }}
- {key: {{ first $parts | quote }}, operator: In, values: {{ toJson (splitList "," (last $parts)) }}}
{{- end }}
{{- end }}

{{- /* The policy that does what the killer did. */}}
{{- define "lastcall.killerPolicy" -}}
{{- $settings := include "lastcall.killerSettings" . | fromJson }}
{{- $drain := include "lastcall.killerDrainSeconds" . | atoi }}
nodeSelector:
  nodeSelectorTerms:
    - matchExpressions:
        - {key: cloud.google.com/gke-preemptible, operator: In, values: ["true"]}
        {{- with $settings.FILTERS }}
        {{- include "lastcall.killerFilters" . | nindent 8 }}
        {{- end }}
# Between 12 and 24 hours after its machine was created, as far from the others as possible.
lifetime: {min: 12h, max: 24h, reserve: {{ max 1800 (add $drain 900) }}s}
spacing: {mode: Even}
{{- if or $settings.WHITELIST_HOURS $settings.BLACKLIST_HOURS }}
windows:
  {{- with $settings.WHITELIST_HOURS }}
  {{- include "lastcall.killerWindows" (dict "hours" . "name" "WHITELIST_HOURS" "prefix" "whitelist" "type" "Allow") | nindent 2 }}
  {{- end }}
  {{- with $settings.BLACKLIST_HOURS }}
  {{- include "lastcall.killerWindows" (dict "hours" . "name" "BLACKLIST_HOURS" "prefix" "blacklist" "type" "Deny") | nindent 2 }}
  {{- end }}
{{- end }}
# After that time the killer deleted the machine, drained or not.
drain: {timeout: {{ $drain }}s, onTimeout: Proceed}
{{- end }}

{{- /* With limits for a smaller program, the controller could not start. */}}
{{- define "lastcall.resources" -}}
{{- $resources := deepCopy .values.resources }}
{{- if and (eq .part "controller") (include "lastcall.isKiller" .root) $resources.limits }}
{{- $limits := $resources.limits }}
{{- if and $limits.memory (lt (include "lastcall.mebibytes" $limits.memory | atoi) 200) }}
{{- $_ := set $limits "memory" "256Mi" }}
{{- end }}
{{- if and $limits.cpu (lt (include "lastcall.millicores" $limits.cpu | atoi) 250) }}
{{- $_ := unset $limits "cpu" }}
{{- end }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{- /* A quantity in whole MiB; a large number if it has another format. */}}
{{- define "lastcall.mebibytes" -}}
{{- $text := include "lastcall.word" . }}
{{- if regexMatch "^[0-9]+(Mi|M)$" $text }}{{ regexFind "^[0-9]+" $text }}
{{- else if regexMatch "^[0-9]+(Ki|k)$" $text }}{{ div (regexFind "^[0-9]+" $text | atoi) 1024 }}
{{- else if regexMatch "^[0-9]+$" $text }}{{ div (regexFind "^[0-9]+" $text | int64) 1048576 }}
{{- else }}100000{{ end }}
{{- end }}

{{- define "lastcall.millicores" -}}
{{- $text := include "lastcall.word" . }}
{{- if hasSuffix "m" $text }}{{ trimSuffix "m" $text }}{{ else }}{{ mulf (float64 $text) 1000 | int }}{{ end }}
{{- end }}
