{{- /* An empty value, such as a key with only comments below it, counts as not set. */}}
{{- define "lastcall.settle" -}}
{{- include "lastcall.fill" (dict "values" .Values "parts" (include "lastcall.defaults" . | fromJson) "isWhole" false) }}
{{- end }}

{{- define "lastcall.fill" -}}
{{- range $name, $part := .parts }}
{{- $isGiven := and (hasKey $.values $name) (not (kindIs "invalid" (get $.values $name))) }}
{{- if hasKey $part "parts" }}
{{- if not $isGiven }}{{ $_ := set $.values $name dict }}{{ end }}
{{- include "lastcall.fill" (dict "values" (get $.values $name) "parts" $part.parts "isWhole" (not $isGiven)) }}
{{- else if not $isGiven }}
{{- if and $.isWhole (hasKey $part "usual") }}{{ $_ := set $.values $name $part.usual }}
{{- else if hasKey $part "default" }}{{ $_ := set $.values $name $part.default }}
{{- else }}{{ $_ := unset $.values $name }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Names. The release's name is in none of them: docs/running.md. */}}
{{- define "lastcall.name" -}}
{{ .Values.nameOverride | default "lastcall" }}
{{- end }}

{{- define "lastcall.fullname" -}}
{{ .Values.fullnameOverride | default (include "lastcall.name" .) }}
{{- end }}

{{- define "lastcall.account" -}}
{{- $name := include "lastcall.fullname" . }}
{{- if and (include "lastcall.isKiller" .) (not .Values.fullnameOverride) }}
{{- $name = include "lastcall.killerName" . }}
{{- end }}
{{- .Values.serviceAccount.name | default (ternary $name "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "lastcall.agentAccount" -}}
{{- $name := printf "%s-agent" (include "lastcall.fullname" .) }}
{{- .Values.agent.serviceAccount.name | default (ternary $name "default" .Values.agent.serviceAccount.create) }}
{{- end }}

{{- define "lastcall.accountAnnotations" -}}
{{- $own := deepCopy .Values.serviceAccount.annotations }}
{{- with (.Values.secret | default dict).workloadIdentityServiceAccount }}
{{- $own = merge $own (dict "iam.gke.io/gcp-service-account" .) }}
{{- end }}
{{- if $own }}{{ toYaml $own }}{{ end }}
{{- end }}

{{- define "lastcall.agentAccountAnnotations" -}}
{{- with .Values.agent.serviceAccount.annotations }}{{ toYaml . }}{{ end }}
{{- end }}

{{- define "lastcall.labels" -}}
{{- $all := dict "app.kubernetes.io/name" (include "lastcall.name" .root) "app.kubernetes.io/component" .component }}
{{- $_ := set $all "app.kubernetes.io/instance" .root.Release.Name }}
{{- $_ := set $all "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- $_ := set $all "app.kubernetes.io/managed-by" .root.Release.Service }}
{{- $chart := printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- $_ := set $all "helm.sh/chart" $chart }}
{{- /* An object's own labels override the chart's, and these override those for every object. */}}
{{- toYaml (merge (deepCopy (.more | default dict)) $all .root.Values.extraLabels) }}
{{- end }}

{{- define "lastcall.podLabels" -}}
{{- $own := deepCopy .values.podLabels }}
{{- if eq .part "controller" }}{{ $own = merge $own (.root.Values.extraPodLabels | default dict) }}{{ end }}
{{- $names := dict "app.kubernetes.io/name" (include "lastcall.name" .root) "app.kubernetes.io/component" .part }}
{{- toYaml (mergeOverwrite (dict "app.kubernetes.io/instance" .root.Release.Name) $own $names) }}
{{- end }}

{{- define "lastcall.podAnnotations" -}}
{{- $all := dict }}
{{- if not (include "lastcall.isLoopback" (include "lastcall.option" (merge (dict "name" "metrics-address") .))) }}
{{- $all = dict "prometheus.io/scrape" "true" "prometheus.io/port" (include "lastcall.metricsPort" .) }}
{{- if eq (include "lastcall.metricsScheme" .) "https" }}
{{- $_ := set $all "prometheus.io/scheme" "https" }}
{{- end }}
{{- end }}
{{- if eq .part "controller" }}
{{- with include "lastcall.keyFile" .root }}
{{- $_ := set $all "checksum/credentials" (. | sha256sum) }}
{{- end }}
{{- $all = mergeOverwrite $all (.root.Values.extraPodAnnotations | default dict) }}
{{- end }}
{{- toYaml (mergeOverwrite $all .values.podAnnotations) }}
{{- end }}

{{- define "lastcall.image" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "lastcall.replicas" -}}
{{- if hasKey .Values "replicaCount" }}{{ .Values.replicaCount }}{{ else }}{{ .Values.controller.replicas }}{{ end }}
{{- end }}

{{- /*
The options of a part, including those of the manifest and those from values of estafette's chart. A file of
options is not seen here, so options on which other objects depend are then set as flags, which take precedence.
*/}}
{{- define "lastcall.options" -}}
{{- $values := ternary .root.Values.agent .root.Values.controller (eq .part "agent") }}
{{- $options := deepCopy ($values.options | default dict) }}
{{- if eq .part "agent" }}
{{- $options = merge $options (dict "health-address" "127.0.0.1:8087") }}
{{- end }}
{{- if include "lastcall.mayHave" (dict "root" .root "part" .part "name" "config") }}
{{- $assumed := dict "leader-elect" true "namespace" .root.Release.Namespace "health-address" ":8080" "metrics-address" ":9101" }}
{{- range $name, $value := ternary (dict "fallback" "None") $assumed (eq .part "agent") }}
{{- if not (hasKey $options $name) }}{{ $options = set $options $name $value }}{{ end }}
{{- end }}
{{- end }}
{{- with .root.Values.logFormat }}
{{- $options = merge $options (dict "log-format" (ternary "text" "json" (has . (list "plaintext" "console")))) }}
{{- end }}
{{- toJson $options }}
{{- end }}

{{- define "lastcall.option" -}}
{{- get (include "lastcall.options" . | fromJson) .name }}
{{- end }}

{{- define "lastcall.args" -}}
{{- $options := include "lastcall.options" . | fromJson }}
{{- range $name := keys $options | sortAlpha }}
{{- $value := get $options $name }}
{{- if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%s" $name (include "lastcall.word" .) | quote }}
{{- end }}
{{- else if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%s" $name (include "lastcall.word" $value) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A value formatted for a flag; a whole number without an exponent. */}}
{{- define "lastcall.word" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end }}

{{- define "lastcall.fallback" -}}
{{- .Values.agent.options.fallback | default "None" }}
{{- end }}

{{- define "lastcall.metricsPort" -}}
{{- $address := include "lastcall.option" (dict "root" .root "part" .part "name" "metrics-address") }}
{{- regexFind "[0-9]+$" $address | default "9101" }}
{{- end }}

{{- define "lastcall.metricsScheme" -}}
{{- $file := include "lastcall.option" (dict "root" .root "part" .part "name" "metrics-cert-file") }}
{{- ternary "https" "http" (ne $file "") }}
{{- end }}

{{- define "lastcall.healthPort" -}}
{{- $address := include "lastcall.option" (dict "root" .root "part" .part "name" "health-address") }}
{{- regexFind "[0-9]+$" $address | default "8080" }}
{{- end }}

{{- define "lastcall.agentHealthHost" -}}
{{- $address := include "lastcall.option" (dict "root" . "part" "agent" "name" "health-address") }}
{{- $host := regexReplaceAll ":[0-9]+$" $address "" | trimAll "[]" }}
{{- ternary "127.0.0.1" $host (has $host (list "" "0.0.0.0" "::" "localhost")) | quote }}
{{- end }}

{{- define "lastcall.env" -}}
{{- $extra := .values.extraEnv }}
{{- $killers := include "lastcall.killerVariables" . | fromJsonArray }}
{{- if kindIs "map" $extra }}
{{- range $name := keys $extra | sortAlpha }}
{{- if not (has $name $killers) }}
- {name: {{ $name | quote }}, value: {{ include "lastcall.word" (get $extra $name) | quote }}}
{{- end }}
{{- end }}
{{- else }}
{{- range $extra }}
{{- if not (has .name $killers) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq .part "controller" }}
{{- with include "lastcall.keySecret" .root }}
- {name: GOOGLE_APPLICATION_CREDENTIALS, value: {{ printf "/gcp-service-account/%s" (include "lastcall.keyName" $.root) | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.volumes" -}}
{{- $volumes := .values.extraVolumes }}
{{- if and (eq .part "controller") (include "lastcall.keySecret" .root) }}
{{- $secret := dict "secretName" (include "lastcall.keySecret" .root) }}
{{- $volumes = append $volumes (dict "name" "gcp-service-account-secret" "secret" $secret) }}
{{- end }}
{{- if $volumes }}{{ toYaml $volumes }}{{ end }}
{{- end }}

{{- define "lastcall.volumeMounts" -}}
{{- $mounts := .values.extraVolumeMounts }}
{{- if and (eq .part "controller") (include "lastcall.keySecret" .root) }}
{{- $mounts = append $mounts (dict "name" "gcp-service-account-secret" "mountPath" "/gcp-service-account" "readOnly" true) }}
{{- end }}
{{- if $mounts }}{{ toYaml $mounts }}{{ end }}
{{- end }}

{{- /* The values' own terms added to the usual ones, kind by kind. */}}
{{- define "lastcall.affinity" -}}
{{- $all := fromYaml .usual }}
{{- $selector := .nodeSelector }}
{{- $required := "requiredDuringSchedulingIgnoredDuringExecution" }}
{{- $preferred := "preferredDuringSchedulingIgnoredDuringExecution" }}
{{- /* A node selector for Spot nodes says that the controller belongs there. */}}
{{- $stable := list }}
{{- $isSpot := false }}
{{- range (get $all.nodeAffinity $preferred | default list) }}
{{- $stable = append $stable .preference }}
{{- range .preference.matchExpressions }}
{{- if hasKey $selector .key }}
{{- if or (eq .operator "DoesNotExist") (and (eq .operator "NotIn") (has (get $selector .key) .values)) }}
{{- $isSpot = true }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .requireStable $isSpot }}
{{- fail "controller.requireStableNodes: found true with a nodeSelector for Spot nodes, which together match no node, expected one of them" }}
{{- end }}
{{- if and .requireStable (hasKey (get .own "nodeAffinity" | default dict) $required) }}
{{- fail "controller.requireStableNodes: found true with a required affinity.nodeAffinity, which replaces what it requires, expected one of them" }}
{{- end }}
{{- if or $isSpot .requireStable }}{{ $_ := unset $all.nodeAffinity $preferred }}{{ end }}
{{- if .requireStable }}{{ $_ := set $all.nodeAffinity $required (dict "nodeSelectorTerms" $stable) }}{{ end }}
{{- range $kind, $terms := .own }}
{{- range $when, $rules := ($terms | default dict) }}
{{- $ofKind := get $all $kind | default dict }}
{{- if not $rules }}
{{- $_ := unset $ofKind $when }}
{{- else if eq $when $preferred }}
{{- $_ := set $ofKind $when (concat (get $ofKind $when | default list) $rules) }}
{{- else }}
{{- $_ := set $ofKind $when $rules }}
{{- end }}
{{- $_ := set $all $kind $ofKind }}
{{- end }}
{{- end }}
{{- range $kind := keys $all }}
{{- if not (get $all $kind) }}{{ $_ := unset $all $kind }}{{ end }}
{{- end }}
{{- if $all }}{{ toYaml $all }}{{ end }}
{{- end }}
