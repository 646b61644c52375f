{{- /* The affinities of deploy/base/controller.yaml and deploy/agent/daemonset.yaml; values add to them. */}}
{{- define "lastcall.controllerAffinity" }}
        # Not on nodes that it may remove, unless the cluster has no others.
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference:
                matchExpressions:
                  - {key: cloud.google.com/gke-preemptible, operator: DoesNotExist}
                  - {key: cloud.google.com/gke-spot, operator: DoesNotExist}
                  - {key: cloud.google.com/gke-provisioning, operator: NotIn, values: [spot, preemptible]}
                  - {key: eks.amazonaws.com/capacityType, operator: NotIn, values: [SPOT]}
                  - {key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}
                  - {key: kubernetes.azure.com/scalesetpriority, operator: NotIn, values: [spot]}
                  - {key: node.kubernetes.io/lifecycle, operator: NotIn, values: [spot]}
{{- end }}
{{- define "lastcall.agentAffinity" }}
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            # Any of these terms: each is the Spot label of one cloud or provisioner.
            nodeSelectorTerms:
              - matchExpressions: [{key: cloud.google.com/gke-preemptible, operator: In, values: ["true"]}]
              - matchExpressions: [{key: cloud.google.com/gke-spot, operator: In, values: ["true"]}]
              - matchExpressions: [{key: cloud.google.com/gke-provisioning, operator: In, values: [spot, preemptible]}]
              - matchExpressions: [{key: eks.amazonaws.com/capacityType, operator: In, values: [SPOT]}]
              - matchExpressions: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]
              - matchExpressions: [{key: kubernetes.azure.com/scalesetpriority, operator: In, values: [spot]}]
              - matchExpressions: [{key: node.kubernetes.io/lifecycle, operator: In, values: [spot]}]
{{- end }}
