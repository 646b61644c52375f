{{- /*
The rules of a policy that the chart's schema cannot express, so that `helm template` refuses what the
API server would refuse later. The ranges of cron fields, and headers and templates of actions are
left to it. All of them render nothing.
*/}}
{{- define "lastcall.checkPolicies" }}
{{- $zones := .Files.Get "files/time-zones.txt" | splitList "\n" }}
{{- range $index, $policy := .Values.policies }}
{{- $at := printf "policies[%d].spec" $index }}
{{- $spec := $policy.spec | default dict }}
{{- include "lastcall.checkLifetime" (dict "at" $at "lifetime" ($spec.lifetime | default dict)) }}
{{- include "lastcall.checkNames" (dict "at" $at "spec" $spec) }}
{{- range $place, $window := $spec.windows }}
{{- include "lastcall.checkWindow" (dict "at" (printf "%s.windows[%d]" $at $place) "window" $window "zones" $zones) }}
{{- end }}
{{- range $place, $budget := $spec.budgets }}
{{- include "lastcall.checkBudget" (dict "at" (printf "%s.budgets[%d]" $at $place) "budget" $budget) }}
{{- end }}
{{- range $place, $action := $spec.actions }}
{{- include "lastcall.checkAction" (dict "at" (printf "%s.actions[%d]" $at $place) "action" $action) }}
{{- end }}
{{- range $place, $rule := ($spec.drain | default dict).podRules }}
{{- if and (hasKey $rule "timeout") (ne "WaitCompleted" ($rule.action | default "")) }}
{{- fail (printf "%s.drain.podRules[%d].timeout: found it with the action %s, expected it only with WaitCompleted" $at $place ($rule.action | default "none")) }}
{{- end }}
{{- end }}
{{- with ($spec.gates | default dict).alerts }}
{{- include "lastcall.checkAlertmanager" (dict "at" (printf "%s.gates.alerts.url" $at) "url" .url) }}
{{- end }}
{{- $replacement := $spec.replacement | default dict }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.drain.timeout" $at) "text" ($spec.drain | default dict).timeout "least" "1s") }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.replacement.timeout" $at) "text" $replacement.timeout "least" "1s") }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.replacement.expectFor" $at) "text" $replacement.expectFor "most" "72h") }}
{{- include "lastcall.checkRequirements" (dict "at" $at "value" $spec) }}
{{- end }}
{{- end }}

{{- /* The seconds of a duration such as 12h30m. */}}
{{- define "lastcall.seconds" -}}
{{- $units := dict "ns" 1e-9 "us" 1e-6 "µs" 1e-6 "ms" 1e-3 "s" 1 "m" 60 "h" 3600 }}
{{- $total := 0.0 }}
{{- range regexFindAll "[0-9.]+(ns|us|µs|ms|s|m|h)" (toString .) -1 }}
{{- $unit := regexFind "[a-zµ]+$" . }}
{{- $total = addf $total (mulf (trimSuffix $unit . | float64) (get $units $unit)) }}
{{- end }}
{{- $total }}
{{- end }}

{{- define "lastcall.checkSpan" }}
{{- if .text }}
{{- $span := include "lastcall.seconds" .text | float64 }}
{{- if and .least (lt $span (include "lastcall.seconds" .least | float64)) }}
{{- fail (printf "%s: found %q, expected at least %s" .at .text .least) }}
{{- end }}
{{- if and .most (gt $span (include "lastcall.seconds" .most | float64)) }}
{{- fail (printf "%s: found %q, expected at most %s" .at .text .most) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkLifetime" }}
{{- $given := .lifetime }}
{{- /* The shortest limit that a cloud names, as in the rules of the CRD. */}}
{{- $limit := ternary "24h" $given.max (eq (toString $given.max) "Platform") }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.lifetime.max" .at) "text" $limit "least" "1s") }}
{{- if $given.max }}
{{- $min := $given.min | default "0s" }}
{{- $reserve := $given.reserve | default "30m" }}
{{- $minSeconds := include "lastcall.seconds" $min | float64 }}
{{- $maxSeconds := include "lastcall.seconds" $limit | float64 }}
{{- $reserveSeconds := include "lastcall.seconds" $reserve | float64 }}
{{- if lt $maxSeconds $minSeconds }}
{{- fail (printf "%s.lifetime.max: found %q, expected at least lifetime.min, which is %s" .at $given.max $min) }}
{{- end }}
{{- if ge $reserveSeconds $maxSeconds }}
{{- fail (printf "%s.lifetime.reserve: found %q%s, expected less than lifetime.max, which is %s" .at $reserve (ternary "" ", the default" (hasKey $given "reserve")) $given.max) }}
{{- end }}
{{- if gt (addf $minSeconds $reserveSeconds) $maxSeconds }}
{{- fail (printf "%s.lifetime.min: found %q, expected at most lifetime.max less lifetime.reserve, which are %s and %s" .at $min $given.max $reserve) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkNames" }}
{{- range $list := list "windows" "actions" }}
{{- $names := list }}
{{- range $place, $one := index $.spec $list | default list }}
{{- if and $one.name (has $one.name $names) }}
{{- fail (printf "%s.%s[%d].name: found %q a second time, expected a unique name" $.at $list $place $one.name) }}
{{- end }}
{{- $names = append $names $one.name }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkWindow" }}
{{- $window := .window }}
{{- if and (hasKey $window "timeZone") (not (has $window.timeZone .zones)) }}
{{- $meant := "" }}
{{- range .zones }}
{{- if hasSuffix (printf "/%s" $window.timeZone | lower) (lower .) }}{{ $meant = . }}{{ end }}
{{- if eq (lower .) (lower $window.timeZone) }}{{ $meant = . }}{{ end }}
{{- end }}
{{- fail (printf "%s.timeZone: found %q, expected an IANA time zone such as %s" .at $window.timeZone ($meant | default "Asia/Tokyo")) }}
{{- end }}
{{- $fields := keys $window }}
{{- if has "cron" $fields }}
{{- if or (has "start" $fields) (has "end" $fields) }}
{{- fail (printf "%s: found cron and start or end, expected either cron with duration or start with end" .at) }}
{{- end }}
{{- if has "days" $fields }}
{{- fail (printf "%s.days: found days beside cron, which has its own, expected one of the two" .at) }}
{{- end }}
{{- if not (has "duration" $fields) }}
{{- fail (printf "%s: found cron without duration, expected a duration such as 6h" .at) }}
{{- end }}
{{- if ne 5 (splitList " " (regexReplaceAll " +" $window.cron " ") | len) }}
{{- fail (printf "%s.cron: found %q, expected five cron fields (minute hour day month weekday) such as 0 18 * * 5" .at $window.cron) }}
{{- end }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.duration" .at) "text" $window.duration "least" "1s") }}
{{- else }}
{{- if has "duration" $fields }}
{{- fail (printf "%s.duration: found a duration without cron, expected end, or cron with duration" .at) }}
{{- end }}
{{- if not (and (has "start" $fields) (has "end" $fields)) }}
{{- fail (printf "%s: expected start with end such as 22:00 and 06:00, or cron with duration" .at) }}
{{- end }}
{{- if eq $window.start $window.end }}
{{- fail (printf "%s.end: found %q as start, too, expected another time (for a whole day, 00:00 to 24:00)" .at $window.end) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkBudget" }}
{{- if eq (hasKey .budget "nodes") (hasKey .budget "perHour") }}
{{- fail (printf "%s: expected either nodes or perHour, and a budget of its own for the other" .at) }}
{{- end }}
{{- if and (hasKey .budget "perHour") (ne "Policy" (.budget.scope | default "Policy")) }}
{{- fail (printf "%s.scope: found %q, expected Policy with perHour" .at .budget.scope) }}
{{- end }}
{{- end }}

{{- define "lastcall.checkAction" }}
{{- $common := list "name" "at" "causes" "timeout" "retries" "required" }}
{{- $kinds := list }}
{{- range keys .action | sortAlpha }}{{ if not (has . $common) }}{{ $kinds = append $kinds . }}{{ end }}{{ end }}
{{- if ne 1 (len $kinds) }}
{{- fail (printf "%s: found %s, expected exactly one type of action, such as slack: {…} or detach: {}" .at (join " and " $kinds | default "none")) }}
{{- end }}
{{- if and .action.required (not (has .action.at (list "AtNotice" "BeforeDrain"))) }}
{{- fail (printf "%s.required: found true, expected it only with AtNotice or BeforeDrain: nothing after the drain can hold it back" .at) }}
{{- end }}
{{- include "lastcall.checkSpan" (dict "at" (printf "%s.timeout" .at) "text" .action.timeout "least" "1s" "most" "15m") }}
{{- with .action.alertmanagerSilence }}
{{- include "lastcall.checkAlertmanager" (dict "at" (printf "%s.alertmanagerSilence.url" $.at) "url" .url) }}
{{- end }}
{{- range $kind := list "slack" "teams" }}
{{- with index $.action $kind }}
{{- if hasKey . "channel" }}
{{- if not (hasKey . "secretRef") }}
{{- fail (printf "%s.%s: found a channel without secretRef, expected the bot's token in secretRef" $.at $kind) }}
{{- end }}
{{- else if eq (hasKey . "url") (hasKey . "secretRef") }}
{{- fail (printf "%s.%s: expected either url or secretRef, which holds the address of the webhook" $.at $kind) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkAlertmanager" }}
{{- if regexMatch "/api/v[0-9]+/?$" (.url | default "") }}
{{- fail (printf "%s: found %q, expected the address of Alertmanager without /api/v2" .at .url) }}
{{- end }}
{{- end }}

{{- /* Requirements on labels, wherever the policy has some. */}}
{{- define "lastcall.checkRequirements" }}
{{- if kindIs "map" .value }}
{{- if and (hasKey .value "key") (hasKey .value "operator") }}
{{- $count := len (.value.values | default list) }}
{{- if and (contains ".matchFields[" .at) (ne $count 1) }}
{{- fail (printf "%s.values: expected exactly one node name" .at) }}
{{- end }}
{{- if and (has .value.operator (list "In" "NotIn")) (eq $count 0) }}
{{- fail (printf "%s.values: expected at least one value with the operator %s" .at .value.operator) }}
{{- end }}
{{- if and (has .value.operator (list "Exists" "DoesNotExist")) (gt $count 0) }}
{{- fail (printf "%s.values: expected no values with the operator %s" .at .value.operator) }}
{{- end }}
{{- if and (has .value.operator (list "Gt" "Lt")) (not (and (eq $count 1) (regexMatch "^-?[0-9]+$" (first .value.values | toString)))) }}
{{- fail (printf "%s.values: expected exactly one whole number with the operator %s" .at .value.operator) }}
{{- end }}
{{- end }}
{{- range $key, $value := .value }}
{{- include "lastcall.checkRequirements" (dict "at" (printf "%s.%s" $.at $key) "value" $value) }}
{{- end }}
{{- else if kindIs "slice" .value }}
{{- range $place, $value := .value }}
{{- include "lastcall.checkRequirements" (dict "at" (printf "%s[%d]" $.at $place) "value" $value) }}
{{- end }}
{{- end }}
{{- end }}
