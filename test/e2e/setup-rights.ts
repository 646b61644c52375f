interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export interface SetupRights {
  /** As `lastcall setup` is told. */
  readonly name: string;
  /** Of a ClusterRole for what stands in no namespace, else of a Role in the controller's. */
  readonly kind: "ClusterRole" | "Role";
  readonly rules: readonly Rule[];
}

const applied = { verbs: ["create", "patch"] };
const annotated = {
  ...{ apiGroups: [""], resources: ["serviceaccounts"] },
  verbs: ["get", "patch"],
};

/** What somebody needs in the cluster who runs `lastcall setup`: docs/security.md. */
export const setupRights: readonly SetupRights[] = [
  {
    ...{ name: "crds", kind: "ClusterRole" },
    rules: [
      {
        ...applied,
        ...{ apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"] },
      },
    ],
  },
  {
    ...{ name: "admission", kind: "ClusterRole" },
    rules: [
      {
        ...{ ...applied, apiGroups: ["admissionregistration.k8s.io"] },
        resources: ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
      },
      // The API server demands the last of whoever makes a policy whose parameters are ConfigMaps.
      { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "patch", "get"] },
    ],
  },
  { name: "gcp", kind: "Role", rules: [annotated] },
  { name: "aws", kind: "Role", rules: [annotated] },
  { name: "azure", kind: "Role", rules: [annotated] },
];
