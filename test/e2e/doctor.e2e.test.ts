import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { runCommandLine } from "../../src/cli/command-line/command-line.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { millis, plus } from "../../src/core/time/time.ts";
import type { DoctorReport, ReportedCheck } from "../../src/doctor/report.ts";
import { controllerRights } from "../../src/doctor/rights.ts";
import { processIo } from "../../src/runtime/process-io.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { ArmServer } from "../support/arm-server.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import { Ec2Fleet } from "../support/ec2-fleet.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { Moto } from "../support/moto.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { json, ScriptedServer } from "../support/scripted-server.ts";
import { doctorFaults, faultPhases } from "./doctor-faults.ts";
import { type Asked, type Fault, patched, type Stage } from "./doctor-stage.ts";
import { FleetWorld } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";

type Report = ReadonlyMap<string, ReportedCheck>;

const root = join(import.meta.dirname, "..", "..");
const alertmanager = new ScriptedServer((_, response) =>
  json(response, 200, [{ labels: { alertname: "Down" }, status: { state: "active" } }]),
);
const fleet = new Ec2Fleet(realClock);
const arm = new ArmServer(realClock);
let world: FleetWorld;
let folder: string;
let stage: Stage;
/** What the relays inject while doctor runs. */
let hearing: Asked = {};
let apiRelay: Relay;
let gceRelay: Relay;
let moto: Moto;
let relayed: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-doctor-"));
  [world, moto] = await Promise.all([FleetWorld.start(), Moto.start()]);
  await Promise.all([alertmanager.start(), fleet.start(), arm.start()]);
  // The AWS SDK reads the environment itself.
  const aws = { ...moto.environment, AWS_ENDPOINT_URL: fleet.url, AWS_ENDPOINT_URL_SQS: moto.url };
  for (const [name, value] of Object.entries(aws)) vi.stubEnv(name, value);
  // For the controller's pods, which prefer these to the nodes that it releases: one for each, in
  // two zones, because they prefer that, too.
  await createNodes(world.plane, [
    { name: "standard-1", provisioning: "standard", zone: "europe-west1-b" },
    { name: "standard-2", provisioning: "standard", zone: "europe-west1-c" },
  ]);
  for (const part of ["quota", "controller"]) await apply("-f", `deploy/base/${part}.yaml`);
  await apply("-k", "deploy/agent");
  // kwok only simulates the pods of the Deployment; this process leads.
  const controller = await world.startController(await world.controllerKubeconfig());
  await world.applyPolicy({ lifetime: { max: "24h" }, replacement: { when: "BeforeDrain" } });
  const { url: target, caFile, adminToken } = world.plane;
  apiRelay = await startRelay({
    ...{ target, ca: () => readFileSync(caFile, "utf8") },
    before: async ({ path }) => (await hearing.api?.(path)) ?? "Pass",
  });
  gceRelay = await startRelay({
    target: world.cloud.endpoint,
    before: async ({ path }) => (await hearing.gce?.(path)) ?? "Pass",
  });
  relayed = kubeconfig(apiRelay.url, adminToken);
  const nowhere = `http://127.0.0.1:${await freePort()}`;
  stage = { world, controller, moto, fleet, arm, alertmanager, nowhere, kubeconfig, apply };
  const containers = [{ name: "controller", args: ["run", "--action-hosts=127.0.0.1"] }];
  // Paused: a rollout would bring a third pod, which prefers a Spot node to one that has a pod.
  const body = { spec: { paused: true, template: { spec: { containers } } } };
  const path = "/apis/apps/v1/namespaces/lastcall/deployments/lastcall";
  await patched(path, body, "strategic-merge")(stage);
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await Promise.all([apiRelay?.close(), gceRelay?.close(), moto?.stop()]);
  await Promise.all([alertmanager.stop(), fleet.close(), arm.close()]);
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function kubeconfig(url: string, token: string): string {
  const file = join(folder, `${new URL(url).port}.kubeconfig`);
  writeKubeconfig({ file, url, token, user: "admin" });
  return file;
}

function apply(how: "-f" | "-k", path: string): Promise<void> {
  return mustRun(world.plane, ["apply", how, join(root, path)]);
}

async function doctor(kubeconfig = world.plane.kubeconfig, ...more: readonly string[]) {
  const endpoint = ["--gcp-endpoint", world.cloud.endpoint];
  const args = ["doctor", "-o", "json", "--kubeconfig", kubeconfig, ...endpoint, ...more];
  const { code, stdout } = await runLastcall(args, { folder });
  const report = JSON.parse(stdout) as DoctorReport;
  return { code, report, of: new Map(report.checks.map((check) => [check.id, check])) };
}

describe("lastcall doctor on a cluster with deploy/ applied", () => {
  test("finds no failed check", async () => {
    await world.until("nothing fails and the policy has its status", async () => {
      const { code, of } = await doctor();
      return (
        code === 0 && of.get("forecast")?.status === "Pass" && of.get("images")?.status === "Pass"
      );
    });
    const { report, of } = await doctor();
    const notPassed = report.checks.filter(({ status }) => status !== "Pass");
    expect(notPassed.map(({ id, status }) => `${id} ${status}`)).toEqual([
      "actions Skip",
      "alerts Skip",
      "queue Skip",
    ]);
    expect(of.get("machines")?.message).toMatch(
      /^3 nodes looked up, the machine of each was found: spot-/,
    );
    expect(of.get("rights")?.message).toBe(
      `the controller has its ${controllerRights.length} permissions`,
    );
  });

  test("tries the policies of every optional part, which refuse only abuse", async () => {
    const optional = ["agent-fallback/cordon", "agent-fallback/drain", "restart-owner"];
    const files = optional.flatMap((part) => [`${part}/rbac.yaml`, `${part}/admission.yaml`]);
    for (const file of files) await apply("-f", `deploy/${file}`);
    const names = ["agent", "agent-node", "agent-pod", "agent-eviction"];
    const all = [...names, "placeholder", "restart-owner"].map((one) => `lastcall-${one}`);
    const said = `in a dry run 7 abuses of the tokens were refused, by ${all.join(", ")}`;
    await world.until("every policy is in force", async () => {
      const { of } = await doctor();
      return of.get("admission")?.message === said;
    });
    for (const file of files) {
      await mustRun(world.plane, ["delete", "-f", join(root, "deploy", file)]);
    }
  });

  test("runs with the controller's account, and skips what that may not read", async () => {
    const { of } = await doctor(await world.controllerKubeconfig(), "-n", "lastcall");
    expect(of.get("rights")).toMatchObject({ status: "Pass" });
    expect(of.get("policies")).toMatchObject({ status: "Pass" });
    expect(of.get("crds")).toMatchObject({ status: "Skip" });
    expect(of.get("reader")).toMatchObject({ status: "Warn" });
  });
});

/** Runs doctor in this process, through relays that can answer for the API server and a cloud. */
async function ask(asked: Asked = {}): Promise<Report> {
  hearing = asked;
  let text = "";
  const now = () => plus(realClock.now(), asked.later ?? millis(0));
  const io: CommandIo = {
    ...processIo(),
    ...{ rng: seededRng(1), signal: new AbortController().signal, clock: { ...realClock, now } },
    env: { HOME: folder, ...asked.env },
    out: (more) => {
      text += more;
    },
    err: () => undefined,
  };
  const clouds = ["--gcp-endpoint", gceRelay.url, "--azure-endpoint", arm.url];
  const through = ["--kubeconfig", relayed, ...clouds];
  await runCommandLine(["doctor", "-o", "json", ...through, ...(asked.flags ?? [])], io);
  const { checks } = JSON.parse(text) as DoctorReport;
  return new Map(checks.map((check) => [check.id, check]));
}

function redIn(checks: Report): readonly string[] {
  const isRed = ({ status }: ReportedCheck) => status === "Warn" || status === "Fail";
  return [...checks.values()].filter(isRed).map(({ id }) => id);
}

/**
 * Runs doctor until exactly these checks are red and the first has this message: an earlier repair
 * may take a moment.
 */
async function untilRed(
  wanted: readonly string[],
  { says = "", asked = {} }: { readonly says?: string; readonly asked?: Asked } = {},
): Promise<Report> {
  let last: Report = new Map();
  const isSo = async () => {
    last = await ask(asked);
    const areAll = redIn(last).toSorted().join() === wanted.toSorted().join();
    return areAll && (last.get(wanted[0] ?? "")?.message ?? "").includes(says) && last;
  };
  try {
    return await world.until(`red are ${wanted.join(", ") || "none"}`, isSo, 30_000);
  } catch (error) {
    const said = redIn(last).map((id) => `${id}: ${last.get(id)?.message}`);
    const found = `found ${said.join("\n")}, expected ${wanted.join(", ")} and "${says}"`;
    throw new Error(`Cannot turn the checks red: ${found}`, { cause: error });
  }
}

/** Checks that stay red because of a fault that was not repaired. */
const standing: string[] = [];
const made: Fault[] = [];

async function turnRed(fault: Fault): Promise<void> {
  const { check, status, says, also = [] } = fault;
  await fault.make?.(stage);
  const asked = (await fault.asked?.(stage)) ?? {};
  const others = also.filter((id) => !standing.includes(id));
  const report = await untilRed([check, ...others, ...standing], { says, asked });
  expect(report.get(check)).toMatchObject({ id: check, status });
  if (fault.make !== undefined && fault.mend === undefined) standing.push(check, ...others);
  await fault.mend?.(stage);
  made.push(fault);
}

describe("lastcall doctor detects, by the right check and no unrelated one,", () => {
  test.each(faultPhases)("$title", async ({ prepare, faults }) => {
    await prepare?.(stage);
    await untilRed(standing);
    for (const fault of faults) await turnRed(fault);
    await untilRed(standing);
  });

  test("all faults in the table of docs/doctor.md", () => {
    expect(made).toEqual(doctorFaults);
  });
});
