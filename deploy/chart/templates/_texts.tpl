{{- /*
The texts that a value may have, in words: for a pattern of the schema, Helm would answer with the
pattern itself. All of them render nothing.
*/}}
{{- define "lastcall.checkTexts" }}
{{- $checks := .Files.Get "files/text-checks.json" | fromJson }}
{{- range $part := list "controller" "agent" }}
{{- $options := (get $.Values $part).options | default dict }}
{{- range $name, $check := get $checks $part }}
{{- include "lastcall.checkTextIn" (dict "at" (printf "%s.options" $part) "value" $options "path" (list $name) "check" $check) }}
{{- end }}
{{- end }}
{{- range $index, $policy := .Values.policies }}
{{- range $check := $checks.policies }}
{{- include "lastcall.checkTextIn" (dict "at" (printf "policies[%d]" $index) "value" $policy "path" $check.path "check" $check) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The value at the path: `*` are the items of a list. What is not set is not checked. */}}
{{- define "lastcall.checkTextIn" }}
{{- if empty .path }}
{{- if and (kindIs "string" .value) (not (regexMatch .check.pattern .value)) }}
{{- $meant := include "lastcall.meant" (dict "text" .value "kind" .check.meant) }}
{{- fail (printf "%s: found %q%s, expected %s" .at .value (ternary "" (printf " (%s?)" $meant) (empty $meant)) .check.wanted) }}
{{- end }}
{{- else if eq (first .path) "*" }}
{{- range $place, $one := .value }}
{{- include "lastcall.checkTextIn" (dict "at" (printf "%s[%d]" $.at $place) "value" $one "path" (rest $.path) "check" $.check) }}
{{- end }}
{{- else if kindIs "map" .value }}
{{- $name := first .path }}
{{- if hasKey .value $name }}
{{- include "lastcall.checkTextIn" (dict "at" (printf "%s.%s" .at $name) "value" (get .value $name) "path" (rest .path) "check" .check) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What is meant by `1d`, `24 hours` or `10 %`; empty if the text is like nothing. */}}
{{- define "lastcall.meant" -}}
{{- $text := trim .text | lower }}
{{- if and (eq "duration" (.kind | default "")) (regexMatch "^[0-9]{1,5} ?[a-z]+$" $text) }}
{{- $count := regexFind "^[0-9]+" $text | atoi }}
{{- $unit := regexFind "[a-z]+$" $text }}
{{- if regexMatch "^s(ecs?|econds?)?$" $unit }}{{ $count }}s
{{- else if regexMatch "^m(ins?|inutes?)?$" $unit }}{{ $count }}m
{{- else if regexMatch "^h(rs?|ours?)?$" $unit }}{{ $count }}h
{{- else if regexMatch "^d(ays?)?$" $unit }}{{ mul 24 $count }}h
{{- else if regexMatch "^w(eeks?)?$" $unit }}{{ mul 168 $count }}h
{{- end }}
{{- else if and (eq "percent" (.kind | default "")) (regexMatch "^([1-9][0-9]?|100) ?(%|percent)$" $text) }}
{{- regexFind "^[0-9]+" $text }}%
{{- end }}
{{- end }}
