interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export interface SetupRights {
  /** The subcommand of `lastcall setup`. */
  readonly name: string;
  /** A ClusterRole for cluster-scoped objects, else a Role in the controller's namespace. */
  readonly kind: "ClusterRole" | "Role";
  readonly rules: readonly Rule[];
}

const applied = { verbs: ["create", "patch"] };
const annotated = {
  ...{ apiGroups: [""], resources: ["serviceaccounts"] },
  verbs: ["get", "patch"],
};

/** The permissions in the cluster that `lastcall setup` needs: docs/security.md. */
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
      // The API server requires `get` from whoever creates a policy with ConfigMaps as parameters.
      { apiGroups: [""], resources: ["configmaps"], verbs: ["create", "patch", "get"] },
    ],
  },
  {
    ...{ name: "gcp", kind: "Role" },
    rules: [
      annotated,
      { apiGroups: [""], resources: ["secrets"], verbs: ["get", "create", "delete"] },
    ],
  },
  { name: "aws", kind: "Role", rules: [annotated] },
  { name: "azure", kind: "Role", rules: [annotated] },
];
