import { checkList } from "../../src/doctor/report.ts";
import { doctorFaults } from "../../test/e2e/doctor-faults.ts";

/** The generated page `docs/doctor.md`, by path. */
export function generateDoctorDocs(): ReadonlyMap<string, string> {
  const rows = checkList.map(({ id, looksAt, fix }) => {
    const cells = [`\`${id}\``, looksAt, fix].map((cell) => cell.replaceAll("|", "\\|"));
    return `| ${cells.join(" | ")} |`;
  });
  return new Map([
    [
      "docs/doctor.md",
      page(
        rows,
        checkList.flatMap(({ id }) => faultsOf(id)),
      ),
    ],
  ]);
}

/** What makes a check fail on a real control plane, as in the end-to-end test. */
function faultsOf(id: string): readonly string[] {
  const faults = doctorFaults.filter(({ check }) => check === id);
  if (faults.length === 0) {
    throw new Error(
      `Cannot list what turns ${id} red: test/e2e/doctor-faults.ts has no such fault`,
    );
  }
  return faults.map(({ status, what, also = [] }) => {
    const others = also.map((other) => `\`${other}\``).join(", ");
    return `| \`${id}\` | ${what} | \`${status}\` | ${others} |`;
  });
}

function page(rows: readonly string[], faults: readonly string[]): string {
  return `<!-- Generated from src/doctor by \`npm run generate\`; edit the checks there. -->
# Doctor

\`lastcall doctor\` checks whether Lastcall is set up correctly in a cluster, and changes nothing: it reads objects,
checks the controller's permissions by SubjectAccessReview, which stores nothing, and tries requests in a dry run. It
looks up three machines in the cloud, and checks the permission to release them if the cloud can tell without side
effects.

\`\`\`
lastcall doctor                          # the cluster of the kubeconfig, with the permissions of its user
lastcall doctor --fail-on warn -o json   # for scripts: exit code 3 if a check fails or warns
kubectl exec -n lastcall deploy/lastcall -- node /app/bin/lastcall.js doctor
\`\`\`

The exit code is 0, or 3 if a check fails, with \`--fail-on warn\` also if one warns. \`-o json\` and \`-o yaml\`
print a \`DoctorReport\`: \`checks\`, each with \`id\`, \`status\`, \`message\` and \`fix\` (null if there is nothing to do),
and \`summary\`, the number of checks per status.

| status | means |
|---|---|
| \`Pass\` | as it should be |
| \`Warn\` | works, but not as well as it could, or deserves attention |
| \`Fail\` | does not work, or will not when it is needed |
| \`Skip\` | does not apply to this cluster, or could not be checked; the message says which |

A refused request does not hide other results: only the check that needs it is skipped, with the reason. The cloud is
queried with the caller's credentials. On a workstation these are a person's, if any; in the controller's pod they are
the controller's, which has fewer permissions in the cluster, so more checks are skipped there.

What cannot be known is \`Skip\` and never \`Pass\`: an option that comes from a ConfigMap, a Secret or a file
(\`valueFrom\`, \`envFrom\`, \`--config\`), or from a shell or a wrapper that starts Lastcall, or a trial that the
caller may not make.

## Dry runs

Whether an admission policy has its effect, its object does not tell: its binding may only audit or warn, or name
another account. So \`admission\` tries it. It acts as the ServiceAccounts of agents and controller, with the groups and
the node that their tokens have, and sends pairs of requests: one that they need, which must pass, and the same about
another node or another pod, which a ValidatingAdmissionPolicy must refuse. \`priority-quota\` creates one more pod of each
workload, as the controller manager would. Each request has \`dryRun=All\`: the API server authorizes, admits and
validates it, and stores nothing. A pair that RBAC does not grant, such as those of an optional part, is left out.

This needs the permission to impersonate them, which \`cluster-admin\` includes and Lastcall's own accounts do not have:

\`\`\`yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: lastcall-doctor-dry-run
rules:
  - apiGroups: [""]
    resources: [serviceaccounts, groups]
    verbs: [impersonate]
  - apiGroups: [authentication.k8s.io]
    resources:
      - userextras/authentication.kubernetes.io/node-name
      - userextras/authentication.kubernetes.io/node-uid
      - userextras/authentication.kubernetes.io/pod-name
      - userextras/authentication.kubernetes.io/pod-uid
    verbs: [impersonate]
\`\`\`

Whoever has it can act as any ServiceAccount, so grant it to administrators only.

## The checks

| id | checks | what to do |
|---|---|---|
${rows.join("\n")}

## What turns them red

\`test/e2e/doctor.e2e.test.ts\` causes each of these faults in turn on a real control plane, and asserts that the check
reports it and that no other check fails or warns except those in the last column, which detect the same fault. Test
servers stand in for Compute Engine, EC2, Auto Scaling and Azure Resource Manager, and moto for SQS. For faults of
\`clock\` and \`lease\` that take minutes to show, the test sets its own clock, or the API server's, ahead.

| id | fault | status | other checks that detect it |
|---|---|---|---|
${faults.join("\n")}

## What it does not see

- Machines that never became nodes, if nothing identifies their cluster. It finds those in the groups of the nodes,
  Spot or not, and in addition:
  - on EC2: Spot instances and Karpenter's with the tag of the cluster (\`kubernetes.io/cluster/NAME\`,
    \`eks:cluster-name\` or \`eks:eks-cluster-name\`), and those of Auto Scaling groups with that tag that
    EKS created, that the autoscaler may fill or that kOps created for nodes; others, such as a bastion, may have the
    tag as well. At most 500 nodes and 100 groups.
  - on Compute Engine: instances with GKE's label \`goog-k8s-cluster-name\`, in every zone, unless
    \`goog-k8s-cluster-location\` shows that they belong to another cluster of that name. At most 20 groups.
  - on Azure: single machines and scale sets in the resource group of the nodes, by the tags of AKS or Karpenter. Listing
    scale sets needs \`Microsoft.Compute/virtualMachineScaleSets/read\`, which the controller's role does not have:
    without it, only scale sets with a node are found. At most 20 scale sets.
- The age of the oldest message in a queue: without CloudWatch, SQS reports only the number of messages. This check needs
  \`sqs:GetQueueAttributes\`, which the controller's own role does not have.
- Whether Auto Scaling permits terminating an instance in a group: AWS shows that only by doing it.
`;
}
