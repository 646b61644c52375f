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

\`lastcall doctor\` looks at whether Lastcall is set up right in a cluster, and changes nothing: it reads, and asks by
SubjectAccessReview what the controller may do, which leaves nothing behind. Clouds are asked for three
machines, and for the permission to release them where they tell it without harm.

\`\`\`
lastcall doctor                          # the cluster of the kubeconfig, with the rights of its user
lastcall doctor --fail-on warn -o json   # for scripts: exit code 3 where a check fails or warns
kubectl exec -n lastcall deploy/lastcall -- node /app/bin/lastcall.js doctor
\`\`\`

The exit code is 0, or 3 where a check fails, with \`--fail-on warn\` also where one warns. \`-o json\` and \`-o yaml\`
print a \`DoctorReport\`: \`checks\`, each with \`id\`, \`status\`, \`message\` and \`fix\` (null where there is nothing to do),
and \`summary\`, how many there are of each status.

| status | means |
|---|---|
| \`Pass\` | it is as it should be |
| \`Warn\` | it works, and not as well as it could, or somebody should know |
| \`Fail\` | something does not work, or will not when it is needed |
| \`Skip\` | it does not concern this cluster, or could not be asked; the message says which |

One question that is refused hides no other: the check that needs it is skipped and says why. The cloud is asked with
the credentials of whoever runs it. On a workstation these are a person's, if there are any; in the controller's pod
they are the controller's, which has fewer rights in the cluster, so that more is skipped there.

## The checks

| id | looks at | what to do |
|---|---|---|
${rows.join("\n")}

## What turns them red

\`test/e2e/doctor.e2e.test.ts\` makes each of these faults in turn on a real control plane, and holds that the check says
so, and that no other turns red with it but those of the last column, which see the same. Compute Engine, EC2, Auto
Scaling and Azure Resource Manager are played by servers of the tests, SQS by moto. \`clock\` and \`lease\` see those faults
that take minutes to count, because the test sets its own clock, or the API server's, ahead for them.

| id | fault | status | others that see it |
|---|---|---|---|
${faults.join("\n")}

## What it does not see

- Machines that never became nodes and of which nothing tells the cluster. Seen are those in the groups of the nodes,
  be they Spot or not, and beside them:
  - on EC2 Spot instances and Karpenter's with the tag of the cluster (\`kubernetes.io/cluster/NAME\`,
    \`eks:cluster-name\` or \`eks:eks-cluster-name\`), and those of Auto Scaling groups with that tag which
    EKS has made, the autoscaler may fill or kOps has made for nodes; others, such as a bastion, may carry it as well.
    Of 500 nodes at most, and 100 groups.
  - on Compute Engine instances with GKE's label \`goog-k8s-cluster-name\`, in every zone, unless
    \`goog-k8s-cluster-location\` says that they are of another cluster of that name. Of 20 groups at most.
  - on Azure single machines and scale sets in the resource group of the nodes, by the tags of AKS or Karpenter. To list
    scale sets takes \`Microsoft.Compute/virtualMachineScaleSets/read\`, which the controller's role does not hold:
    without it those are seen that have a node. Of 20 scale sets at most.
- How old the oldest message of a queue is: SQS says how many there are, and nothing else without CloudWatch. Asking
  needs \`sqs:GetQueueAttributes\`, which the controller's own role does not have.
- Whether Auto Scaling permits to terminate in a group: AWS tells that by doing it only.
`;
}
