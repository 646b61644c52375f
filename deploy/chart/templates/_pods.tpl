{{- /*
Values that are valid one by one, with which a part's pod could not start or would not be reached.
All of them render nothing.
*/}}
{{- define "lastcall.checkPods" }}
{{- include "lastcall.checkUnique" (dict "at" "imagePullSecrets" "key" "name" "items" .Values.imagePullSecrets) }}
{{- range $part := list "controller" "agent" }}
{{- if (get $.Values $part).enabled }}
{{- $values := ternary $.Values.agent $.Values (eq $part "agent") }}
{{- $about := dict "root" $ "part" $part "values" $values "at" (ternary "agent." "" (eq $part "agent")) }}
{{- include "lastcall.checkAddresses" $about }}
{{- include "lastcall.checkVariables" $about }}
{{- include "lastcall.checkVolumes" $about }}
{{- include "lastcall.checkFiles" $about }}
{{- include "lastcall.checkResources" $about }}
{{- include "lastcall.checkUser" $about }}
{{- end }}
{{- end }}
{{- if .Values.agent.enabled }}{{ include "lastcall.checkUpdate" . }}{{ end }}
{{- end }}

{{- define "lastcall.checkAddresses" }}
{{- $monitors := list }}
{{- range $name := list "serviceMonitor" "podMonitor" }}
{{- if (get $.root.Values.metrics $name).enabled }}{{ $monitors = append $monitors $name }}{{ end }}
{{- end }}
{{- range $name := list "health-address" "metrics-address" "notice-address" }}
{{- $address := include "lastcall.option" (merge (dict "name" $name) $) }}
{{- $host := regexReplaceAll ":[0-9]+$" $address "" | trimAll "[]" }}
{{- $at := printf "%s.options.%s" $.part $name }}
{{- with regexFind "[0-9]+$" $address }}
{{- $isAll := has $host (list "" "0.0.0.0" "::") }}
{{- if and (regexMatch "^[0-9.]+$|:" $host) (not $isAll) (not (include "lastcall.isLoopback" $address)) }}
{{- fail (printf "%s: found %q, which one machine has at most, expected an address of every pod, such as :9101" $at $address) }}
{{- end }}
{{- if and (eq $.part "agent") (eq $name "health-address") (contains "$(" $host) }}
{{- fail (printf "%s: found %q, expected an address without a variable, because the kubelet probes it as it is written" $at $address) }}
{{- end }}
{{- if and (eq $name "metrics-address") (include "lastcall.isLoopback" $address) $monitors }}
{{- fail (printf "%s: found %q, which Prometheus does not reach, with metrics.%s.enabled, expected an address such as :9101" $at $address (first $monitors)) }}
{{- end }}
{{- if and (lt (atoi .) 1024) (not (include "lastcall.mayBindBelow" (dict "about" $ "port" (atoi .)))) }}
{{- $way := ternary "" ", or podSecurityContext.sysctls with net.ipv4.ip_unprivileged_port_start" (eq $.part "agent") }}
{{- fail (printf "%s: found the port %s, which only root may use, expected one from 1024 on%s" $at . $way) }}
{{- end }}
{{- /* Source: kubernetes pkg/cluster/ports, of the kubelet and of kube-proxy. */}}
{{- if and (eq $.part "agent") (has . (list "10248" "10249" "10250" "10255" "10256")) }}
{{- fail (printf "%s: found the port %s, which Kubernetes itself uses on every node, expected another one" $at .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.isLoopback" -}}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\]:)" . }}true{{ end }}
{{- end }}

{{- /*
Not empty if the pod may bind a port below 1024. Kubernetes gives a user other than root no ambient
capabilities, and a pod on the node's network no sysctls of the network.
*/}}
{{- define "lastcall.mayBindBelow" -}}
{{- $pod := .about.values.podSecurityContext | default dict }}
{{- $container := .about.values.securityContext | default dict }}
{{- $capabilities := $container.capabilities | default dict }}
{{- $user := ternary $container.runAsUser $pod.runAsUser (hasKey $container "runAsUser") }}
{{- $isDropped := or (has "ALL" $capabilities.drop) (has "NET_BIND_SERVICE" $capabilities.drop) }}
{{- $isAdded := or (has "ALL" $capabilities.add) (has "NET_BIND_SERVICE" $capabilities.add) }}
{{- if and (eq (toString $user) "0") (or $isAdded (not $isDropped)) }}true{{ end }}
{{- if eq .about.part "controller" }}
{{- $port := .port }}
{{- range $pod.sysctls }}
{{- if and (eq .name "net.ipv4.ip_unprivileged_port_start") (le (toString .value | atoi) $port) }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The API server merges these lists by a key, and rejects an apply in which one repeats. */}}
{{- define "lastcall.checkUnique" }}
{{- $found := list }}
{{- range $item := .items }}
{{- $name := get $item $.key | toString }}
{{- if has $name $found }}
{{- fail (printf "%s: found the %s %q twice, expected each once, because the API server merges the list by it" $.at $.key $name) }}
{{- end }}
{{- $found = append $found $name }}
{{- end }}
{{- end }}

{{- define "lastcall.checkVariables" }}
{{- $at := printf "%sextraEnv" .at }}
{{- $extra := .values.extraEnv | default list }}
{{- if kindIs "slice" $extra }}
{{- include "lastcall.checkUnique" (dict "at" $at "key" "name" "items" $extra) }}
{{- range $extra }}
{{- if and .value .valueFrom }}
{{- fail (printf "%s.%s: found value and valueFrom, expected one of them" $at .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkVolumes" }}
{{- $volumes := include "lastcall.volumes" . | fromYamlArray }}
{{- $mounts := include "lastcall.volumeMounts" . | fromYamlArray }}
{{- include "lastcall.checkUnique" (dict "at" (printf "%sextraVolumes" .at) "key" "name" "items" $volumes) }}
{{- include "lastcall.checkUnique" (dict "at" (printf "%sextraVolumeMounts" .at) "key" "mountPath" "items" $mounts) }}
{{- $names := list }}
{{- $projected := list }}
{{- range $volumes }}
{{- $names = append $names .name }}
{{- if .projected }}{{ $projected = append $projected .name }}{{ end }}
{{- end }}
{{- range $mount := $mounts }}
{{- if not (has .name $names) }}
{{- fail (printf "%sextraVolumeMounts: found a mount of the volume %q, expected the volume in %sextraVolumes" $.at (toString .name) $.at) }}
{{- end }}
{{- $hidden := "" }}
{{- if eq (clean .mountPath) "/" }}{{ $hidden = "the program" }}{{ end }}
{{- /* The admission plugin ServiceAccount mounts nothing where a mount is. */}}
{{- if and (eq (clean .mountPath) "/var/run/secrets/kubernetes.io/serviceaccount") (not (has .name $projected)) }}
{{- $hidden = "the token of the ServiceAccount" }}
{{- end }}
{{- with $hidden }}
{{- fail (printf "%sextraVolumeMounts: found the mountPath %q, which hides %s, expected another one" $.at $mount.mountPath .) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A file is in a volume. What an annotation lets a webhook inject is not seen here. */}}
{{- define "lastcall.checkFiles" }}
{{- $isInjected := false }}
{{- range $name, $_ := include "lastcall.podAnnotations" . | fromYaml }}
{{- if contains "inject" $name }}{{ $isInjected = true }}{{ end }}
{{- end }}
{{- $options := include "lastcall.options" . | fromJson }}
{{- $files := list }}
{{- range $name := get (include "lastcall.fileOptions" . | fromJson) .part }}
{{- range $path := (kindIs "slice" (get $options $name)) | ternary (get $options $name) (list (get $options $name)) }}
{{- $files = append $files (dict "at" (printf "%s.options.%s" $.part $name) "path" $path) }}
{{- end }}
{{- end }}
{{- $variables := list "GOOGLE_APPLICATION_CREDENTIALS" "AWS_CONFIG_FILE" "AWS_SHARED_CREDENTIALS_FILE" }}
{{- range get (include "lastcall.fileOptions" . | fromJson) .part }}
{{- $variables = append $variables (printf "LASTCALL_%s" . | upper | replace "-" "_") }}
{{- end }}
{{- range include "lastcall.env" . | fromYamlArray }}
{{- if has .name $variables }}
{{- $files = append $files (dict "at" (printf "%sextraEnv.%s" $.at .name) "path" .value) }}
{{- end }}
{{- end }}
{{- range $file := $files }}
{{- if and $file.path (not $isInjected) }}
{{- $isMounted := false }}
{{- range include "lastcall.volumeMounts" $ | fromYamlArray }}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $file.path) }}{{ $isMounted = true }}{{ end }}
{{- end }}
{{- if not $isMounted }}
{{- fail (printf "%s: found %q, which no volume contains, expected a mount for it in %sextraVolumeMounts" $file.at $file.path $.at) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Of a security context, each with what the chart's defaults add to it. */}}
{{- define "lastcall.checkUser" }}
{{- $pod := .values.podSecurityContext | default dict }}
{{- $container := .values.securityContext | default dict }}
{{- $isOwn := hasKey $container "runAsUser" }}
{{- $user := ternary $container.runAsUser $pod.runAsUser $isOwn }}
{{- $mustNot := ternary $container.runAsNonRoot $pod.runAsNonRoot (hasKey $container "runAsNonRoot") }}
{{- if and $mustNot (eq (toString $user) "0") }}
{{- fail (printf "%s%s.runAsUser: found 0 with runAsNonRoot, expected another user, or runAsNonRoot: false" .at (ternary "securityContext" "podSecurityContext" $isOwn)) }}
{{- end }}
{{- if and $container.privileged (eq (toString $container.allowPrivilegeEscalation) "false") }}
{{- fail (printf "%ssecurityContext.privileged: found true with allowPrivilegeEscalation: false, the default, expected one of them" .at) }}
{{- end }}
{{- if eq .part "agent" }}
{{- range $pod.sysctls }}
{{- if hasPrefix "net." .name }}
{{- fail (printf "agent.podSecurityContext.sysctls: found %s, expected none of the network, which is the node's" .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Two agents of one node would need the same port of it, so the old one ends first. */}}
{{- define "lastcall.checkUpdate" }}
{{- $rolling := .Values.agent.updateStrategy.rollingUpdate | default dict }}
{{- $at := "agent.updateStrategy.rollingUpdate" }}
{{- $why := "because the old and the new agent of a node need the same port of it" }}
{{- if ne .Values.agent.updateStrategy.type "OnDelete" }}
{{- with $rolling.maxSurge }}
{{- if not (regexMatch "^0%?$" (include "lastcall.word" .)) }}
{{- fail (printf "%s.maxSurge: found %s, expected none, %s" $at (include "lastcall.word" .) $why) }}
{{- end }}
{{- end }}
{{- if hasKey $rolling "maxUnavailable" }}
{{- $most := include "lastcall.word" $rolling.maxUnavailable }}
{{- if regexMatch "^0%?$" $most }}
{{- fail (printf "%s.maxUnavailable: found %s, expected at least 1, %s" $at $most $why) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "lastcall.checkResources" }}
{{- $resources := include "lastcall.resources" . | fromYaml }}
{{- $limits := get $resources "limits" | default dict }}
{{- range $name, $request := get $resources "requests" | default dict }}
{{- if and (hasKey $limits $name) (not (kindIs "invalid" (get $limits $name))) (not (kindIs "invalid" $request)) }}
{{- $limit := include "lastcall.word" (get $limits $name) }}
{{- if gt (include "lastcall.quantity" $request | float64) (include "lastcall.quantity" $limit | float64) }}
{{- fail (printf "%sresources.requests.%s: found %s, expected at most resources.limits.%s, which is %s" $.at $name (include "lastcall.word" $request) $name $limit) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A quantity such as 10m, 1.5Gi or 1e3 as a plain number. */}}
{{- define "lastcall.quantity" -}}
{{- $text := include "lastcall.word" . }}
{{- $unit := regexFind "([numkMGTPE]|[KMGTPE]i)$" $text }}
{{- $factor := 1.0 }}
{{- range $power, $one := list "n" "u" "m" "" "k" "M" "G" "T" "P" "E" }}
{{- if and $one (eq $unit $one) }}
{{- range until $power }}{{ $factor = mulf $factor 1000.0 }}{{ end }}
{{- $factor = divf $factor 1000000000.0 }}
{{- end }}
{{- end }}
{{- range $power, $one := list "Ki" "Mi" "Gi" "Ti" "Pi" "Ei" }}
{{- if eq $unit $one }}
{{- range until (int (add1 $power)) }}{{ $factor = mulf $factor 1024.0 }}{{ end }}
{{- end }}
{{- end }}
{{- mulf (trimSuffix $unit $text | float64) $factor }}
{{- end }}

{{- /* What would give Lastcall's permissions to users. */}}
{{- define "lastcall.checkRoles" }}
{{- $name := include "lastcall.fullname" . }}
{{- if has $name (list "admin" "cluster-admin" "edit" "view") }}
{{- $at := ternary "fullnameOverride" "nameOverride" (ne .Values.fullnameOverride "") }}
{{- fail (printf "%s: found %q, the name of a ClusterRole of Kubernetes itself, expected another one, because the chart would replace what it permits" $at $name) }}
{{- end }}
{{- range $name := keys .Values.extraLabels | sortAlpha }}
{{- if hasPrefix "rbac.authorization.k8s.io/" $name }}
{{- fail (printf "extraLabels.%s: found a label by which Kubernetes adds the permissions of the controller and the agents to roles of users, expected none: label the ClusterRole %s-edit itself" $name (include "lastcall.fullname" $)) }}
{{- end }}
{{- end }}
{{- end }}
