{{- /* Written by `npm run generate` from values.yaml. */}}
{{- define "lastcall.defaults" }}
{
"nameOverride": {"default":""},
"fullnameOverride": {"default":""},
"image": {"parts":{"repository":{"default":"lastcall"},"tag":{"default":""},"digest":{"default":""},"pullPolicy":{"default":"IfNotPresent"}}},
"imagePullSecrets": {"default":[]},
"priorityClassName": {"default":""},
"rbac": {"parts":{"enable":{"default":true}}},
"policies": {"default":[]},
"controller": {"parts":{"enabled":{"default":true},"replicas":{"default":2},"options":{"default":{}},"restartOwner":{"default":false},"requireStableNodes":{"default":false}}},
"serviceAccount": {"parts":{"create":{"default":true},"name":{"default":""},"annotations":{"default":{}}}},
"nodeSelector": {"default":{}},
"tolerations": {"default":[]},
"affinity": {"default":{}},
"resources": {"default":{},"usual":{"requests":{"cpu":"10m","memory":"100Mi"},"limits":{"memory":"256Mi"}}},
"podLabels": {"default":{}},
"podAnnotations": {"default":{}},
"podSecurityContext": {"default":{},"usual":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}},
"securityContext": {"default":{},"usual":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}}},
"extraEnv": {},
"extraVolumes": {"default":[]},
"extraVolumeMounts": {"default":[]},
"agent": {"parts":{"enabled":{"default":true},"options":{"default":{}},"updateStrategy":{"default":{},"usual":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"10%"}}},"image":{"parts":{"repository":{"default":"lastcall-agent"},"tag":{"default":""},"digest":{"default":""},"pullPolicy":{"default":"IfNotPresent"}}},"serviceAccount":{"parts":{"create":{"default":true},"name":{"default":""},"annotations":{"default":{}}}},"nodeSelector":{"default":{}},"tolerations":{"default":[],"usual":[{"operator":"Exists"}]},"affinity":{"default":{}},"resources":{"default":{},"usual":{"requests":{"cpu":"2m","memory":"40Mi"},"limits":{"memory":"96Mi"}}},"podLabels":{"default":{}},"podAnnotations":{"default":{}},"podSecurityContext":{"default":{},"usual":{"runAsNonRoot":true,"runAsUser":65532,"seccompProfile":{"type":"RuntimeDefault"}}},"securityContext":{"default":{},"usual":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}}},"extraEnv":{},"extraVolumes":{"default":[]},"extraVolumeMounts":{"default":[]}}},
"metrics": {"parts":{"serviceMonitor":{"parts":{"enabled":{"default":false},"labels":{"default":{}},"interval":{"default":"30s"}}},"podMonitor":{"parts":{"enabled":{"default":false},"labels":{"default":{}},"interval":{"default":"30s"}}},"prometheusRule":{"parts":{"enabled":{"default":false},"labels":{"default":{}}}}}},
"grafanaDashboard": {"parts":{"enabled":{"default":false},"labels":{"default":{},"usual":{"grafana_dashboard":"1"}},"annotations":{"default":{}}}},
"networkPolicy": {"parts":{"enabled":{"default":false},"metricsFrom":{"default":[],"usual":[{"namespaceSelector":{}}]},"egress":{"default":[]}}},
"flowSchema": {"parts":{"enabled":{"default":false},"priorityLevel":{"default":"workload-high"},"precedence":{"default":900}}},
"secret": {},
"drainTimeout": {},
"replicaCount": {},
"logFormat": {},
"interval": {},
"extraLabels": {"default":{}},
"extraPodLabels": {},
"extraPodAnnotations": {},
"extraArgs": {},
"prometheus": {}
}
{{- end }}

{{- define "lastcall.spanLimits" }}{"gcp-preemption-poll":{"least":"1s","most":"1m"},"sqs-abandon-launch-after":{"least":"1m"},"ec2-status-poll":{"least":"1s","most":"10m"}}{{- end }}

{{- define "lastcall.fileOptions" }}{"controller":["kubeconfig","config","filename","metrics-cert-file","metrics-key-file"],"agent":["kubeconfig","config","metrics-cert-file","metrics-key-file"]}{{- end }}
