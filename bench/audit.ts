import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { type AuditIo, runAudit } from "../src/cli/commands/audit.ts";
import { nodeFiles } from "../src/cli/input/read-objects.ts";

/**
 * The audit of 10,000 manifests in 1,000 files, compared with the time that the YAML parser alone
 * takes for the same text, and with kube-score if that is on the PATH (`go install
 * github.com/zegl/kube-score/cmd/kube-score`). The goal is 5 s on two cores.
 */
const manifestCount = 10_000;
const perFile = 10;

/** A typical mix of an application: two of five manifests create pods. */
function manifest(index: number): string {
  const app = `app-${Math.floor(index / 5)}`;
  const namespace = `team-${index % 40}`;
  const head = (apiVersion: string, kind: string) =>
    `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${app}\n  namespace: ${namespace}\n`;
  switch (index % 5) {
    case 0:
      return `${head("apps/v1", "Deployment")}spec:
  replicas: 3
  selector:
    matchLabels:
      app.kubernetes.io/name: ${app}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: ${app}
    spec:
      terminationGracePeriodSeconds: ${10 + (index % 90)}
      containers:
      - name: main
        image: registry.example/${app}:1.2.3
        args: ["--listen", ":8080"]
        ports:
        - name: http
          containerPort: 8080
        readinessProbe:
          httpGet:
            path: /ready
            port: http
        resources:
          requests:
            cpu: 100m
            memory: 128Mi
          limits:
            memory: 128Mi
        volumeMounts:
        - name: tmp
          mountPath: /tmp
      volumes:
      - name: tmp
        emptyDir: {}
`;
    case 1:
      return `${head("v1", "Service")}spec:
  selector:
    app.kubernetes.io/name: ${app}
  ports:
  - name: http
    port: 80
    targetPort: http
`;
    case 2:
      return `${head("policy/v1", "PodDisruptionBudget")}spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      app.kubernetes.io/name: ${app}
`;
    case 3:
      return `${head("v1", "ConfigMap")}data:
  application.properties: |
    server.port=8080
    log.level=info
`;
    default:
      return `${head("batch/v1", "CronJob")}spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: registry.example/${app}-nightly:1.2.3
`;
  }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-bench-"));
  const texts: string[] = [];
  for (let from = 0; from < manifestCount; from += perFile) {
    const parts = Array.from({ length: perFile }, (_, at) => manifest(from + at));
    const text = parts.join("---\n");
    texts.push(text);
    writeFileSync(join(folder, `${String(from).padStart(5, "0")}.yaml`), text);
  }
  const auditSeconds = await timed(() => runOn(folder));
  const parserSeconds = await timed(async () => {
    for (const text of texts) for (const document of parseAllDocuments(text)) document.toJS();
  });
  const kubeScoreSeconds = timedKubeScore(folder);
  rmSync(folder, { recursive: true });
  const result = {
    manifests: manifestCount,
    bytes: texts.reduce((sum, text) => sum + text.length, 0),
    goalSeconds: 5,
    auditSeconds,
    parserSeconds,
    auditOverParser: auditSeconds / parserSeconds,
    kubeScoreSeconds,
    kubeScoreOverAudit: kubeScoreSeconds === null ? null : kubeScoreSeconds / auditSeconds,
  };
  writeFileSync("bench/results/audit.json", `${JSON.stringify(result, null, 2)}\n`);
  const beside =
    result.kubeScoreOverAudit === null
      ? ""
      : `; kube-score takes ${result.kubeScoreOverAudit.toFixed(2)} x as long`;
  process.stdout.write(
    `audit of ${manifestCount} manifests: ${auditSeconds.toFixed(2)} s, ${result.auditOverParser.toFixed(2)} x the YAML parser alone${beside}\n`,
  );
}

/** kube-score exits with 1 if it has findings, as it does here. Null if it is not installed. */
function timedKubeScore(folder: string): number | null {
  const files = readdirSync(folder).map((name) => join(folder, name));
  const begun = performance.now();
  const { status, error } = spawnSync(
    "kube-score",
    ["score", "--output-format", "json", ...files],
    {
      stdio: "ignore",
    },
  );
  if (error !== undefined || status === null || status > 1) return null;
  return (performance.now() - begun) / 1000;
}

async function runOn(folder: string): Promise<void> {
  let printed = "";
  const io: AuditIo = {
    ...nodeFiles(process.stdin),
    stdout: (text) => {
      printed += text;
    },
    stderr: () => undefined,
    isTty: false,
    colour: false,
  };
  const command = { files: [folder], from: [], platforms: ["gke"], version: "bench" };
  await runAudit({ ...command, failOn: "never", output: "json" }, io);
  const workloads = Number(/"workloads": (\d+),/.exec(printed)?.[1]);
  if (workloads !== (manifestCount * 2) / 5) throw new Error(`${workloads} workloads were judged`);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}

await main();
