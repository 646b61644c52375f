import type { KubeObject, KubeRequest } from "../../contracts/kube-api.ts";
import { departStep } from "../../core/departure/decision.ts";
import type { Departure } from "../../core/departure/departure.ts";
import {
  fieldsOf,
  instantOf,
  listOf,
  nameOf,
  textMapOf,
  textOf,
} from "../../core/json/json-field.ts";
import { matchesNodeSelector, type Policy } from "../../core/policy/policy.ts";
import { formatInstant, type Instant, minutes } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { KubeDepartureStore } from "../../kube/departure-store.ts";
import * as paths from "../../kube/object/api-call.ts";
import { answerMessage, apiError } from "../../kube/object/api-call.ts";
import { translateDeparture } from "../../kube/object/translate-departure.ts";
import { translateNode } from "../../kube/object/translate-node.ts";
import { listAll, listPages } from "../../kube/watch/collection.ts";
import { handlerValuesSetup, handlerWorkloadSetup } from "../../migrate/handler-setup.ts";
import { killerImage, translateKiller } from "../../migrate/killer.ts";
import { killerValuesSetup, killerWorkloadSetup } from "../../migrate/killer-setup.ts";
import {
  handlerMarks,
  killerMarks,
  type Leftover,
  leftoverText,
  type MarkedNode,
  type MarkFinding,
  type ToolState,
  takeOver,
} from "../../migrate/node-marks.ts";
import { handlerImage, translateHandler } from "../../migrate/termination-handler.ts";
import type {
  ManifestObject,
  PolicyManifest,
  ToolSetup,
  ToolWorkload,
  Translation,
} from "../../migrate/workload.ts";
import { type Connection, connect } from "../cluster/connect.ts";
import type { CommandIo } from "../command-line/command.ts";

interface CleanUp {
  readonly documents: readonly PolicyManifest[];
  readonly policies: readonly Policy[];
  /** If false, what would be done is printed, and nothing is written. */
  readonly apply: boolean;
}

/** How often the removal from a node is tried if others write it at the same time. */
const attempts = 3;

/** The cluster in which a tool is replaced. */
export class MigrateCluster {
  readonly #tool: Tool;
  readonly #connection: Connection;
  readonly #io: CommandIo;
  #failures = 0;

  private constructor(tool: Tool, connection: Connection, io: CommandIo) {
    this.#tool = tool;
    this.#connection = connection;
    this.#io = io;
  }

  static async open(
    tool: Tool,
    options: { readonly kubeconfig?: string | undefined; readonly context?: string | undefined },
    io: CommandIo,
  ): Promise<MigrateCluster> {
    return new MigrateCluster(tool, await connect({ ...options, signal: io.signal }, io), io);
  }

  close(): void {
    this.#connection.close();
  }

  /** Whether a change that should have been made failed. */
  hasFailed(): boolean {
    return this.#failures > 0;
  }

  /** The tool's workloads, and the ServiceAccounts of their namespaces. */
  async workloadObjects(): Promise<readonly ManifestObject[]> {
    const { api } = this.#connection;
    const kinds = [
      ["Deployment", "/apis/apps/v1/deployments"],
      ["DaemonSet", paths.daemonSetsPath],
    ] as const;
    const workloads: ManifestObject[] = [];
    for (const [kind, path] of kinds) {
      for (const one of await listAll(api, path)) {
        if (this.#isOfTool(fieldsOf(fieldsOf(one.spec).template).spec)) {
          workloads.push({ ...one, kind });
        }
      }
    }
    const namespaces = new Set(
      workloads.map(({ metadata }) => textOf(fieldsOf(metadata).namespace)),
    );
    const accounts: ManifestObject[] = [];
    for (const namespace of namespaces) {
      const path = `${paths.namespacesPath}/${namespace}/serviceaccounts`;
      const found = await listAll(api, path);
      accounts.push(...found.map((one) => ({ ...one, kind: "ServiceAccount" })));
    }
    return [...workloads, ...accounts];
  }

  /**
   * Applies the policies, takes over the tool's planned instants and removes what the tool left on
   * nodes; without `apply`, prints what it would do.
   */
  async cleanUp({ documents, policies, apply }: CleanUp): Promise<void> {
    if (apply) for (const document of documents) await this.#applyPolicy(document);
    const toolNodes = await this.#toolNodes();
    const tool: ToolState = { runs: toolNodes.size > 0, busyMs: busyFor(policies) };
    if (tool.runs && apply) {
      this.#say(
        `${this.#tool.name} is still running, and both act on the same nodes until it is uninstalled`,
      );
    }
    const departures = await this.#departures();
    for (const object of await listAll(this.#connection.api, paths.nodesPath)) {
      await this.#takeOver(object, { policies, departures, apply, toolNodes });
      await this.#tidy(object, { tool, toolNodes, apply });
    }
  }

  async #applyPolicy(document: PolicyManifest): Promise<void> {
    const { name } = document.metadata;
    const request = {
      ...({ method: "PATCH", path: paths.policyPath(name) } as const),
      patchType: "application/apply-patch+yaml",
      // Without force, so that changes made by users are kept.
      query: { fieldManager: "lastcall-migrate" },
      body: document,
    } as const;
    const answer = await this.#connection.api.send(request);
    if (answer.status === 409) throw changedByOthers(name, answerMessage(answer));
    if (answer.status >= 300) throw apiError(request, answer);
    this.#say(`departurepolicy/${name} applied`);
  }

  /** Whether a pod runs the tool. */
  #isOfTool(podSpec: unknown): boolean {
    return listOf(fieldsOf(podSpec).containers).some((container) =>
      textOf(fieldsOf(container).image)?.includes(this.#tool.image),
    );
  }

  /** The nodes on which a pod of the tool runs. */
  async #toolNodes(): Promise<ReadonlySet<string>> {
    const nodes = new Set<string>();
    for await (const page of listPages(this.#connection.api, paths.podsPath, {})) {
      for (const { metadata, spec, status } of page) {
        const phase = fieldsOf(status).phase;
        const isOver = phase === "Succeeded" || phase === "Failed";
        const isEnding = metadata?.deletionTimestamp !== undefined;
        const node = textOf(fieldsOf(spec).nodeName);
        if (node && !isOver && !isEnding && this.#isOfTool(spec)) nodes.add(node);
      }
    }
    return nodes;
  }

  /** Empty if the resources are not installed yet. */
  async #departures(): Promise<readonly Departure[]> {
    try {
      const found = await listAll(this.#connection.api, paths.departuresPath);
      return found.flatMap((one) => translateDeparture(one) ?? []);
    } catch (error) {
      if (isLastcallError(error) && error.code === "CRD_MISSING") return [];
      throw error;
    }
  }

  async #takeOver(
    object: KubeObject,
    given: {
      readonly policies: readonly Policy[];
      readonly departures: readonly Departure[];
      readonly apply: boolean;
      readonly toolNodes: ReadonlySet<string>;
    },
  ): Promise<void> {
    const node = translateNode(object);
    const policy = given.policies.find(
      ({ nodeSelector }) => nodeSelector !== undefined && matchesNodeSelector(node, nodeSelector),
    );
    if (policy === undefined) return;
    const taken = takeOver(markedNode(object, given.toolNodes), policy, this.#io.clock.now());
    if (taken === undefined) return;
    if (taken.kind === "Planned") return this.#say(taken.sentence);
    const { departAt } = taken;
    // Without its own deadline, the drain gets the policy's timeout, and not the rest of the day.
    const step = departStep(node, { departAt, policy: policy.name }, given.departures);
    const when = `at ${formatInstant(departAt)}, as the killer planned`;
    if (step.kind !== "Create") return this.#say(`${node.name} keeps its existing Departure`);
    if (!given.apply) return this.#say(`${node.name} would leave ${when}`);
    await this.#try(`${node.name} does not leave ${when}`, async () => {
      const { kind } = await new KubeDepartureStore(this.#connection.api).create(step.made);
      if (kind !== "Done") throw new Error("somebody else has just created its Departure");
      this.#say(`departure/${step.made.name} created: ${node.name} leaves ${when}`);
    });
  }

  async #tidy(
    object: KubeObject,
    given: {
      readonly tool: ToolState;
      readonly toolNodes: ReadonlySet<string>;
      readonly apply: boolean;
    },
  ): Promise<void> {
    const findings = this.#findings(object, given);
    for (const finding of findings) {
      if (finding.kind === "Left") this.#say(finding.sentence);
      else if (!given.apply) {
        this.#say(`would remove ${leftoverText(finding.leftover)} from ${finding.leftover.node}`);
      } else await this.#takeOff(object, given);
    }
  }

  #findings(
    object: KubeObject,
    { tool, toolNodes }: { readonly tool: ToolState; readonly toolNodes: ReadonlySet<string> },
  ): readonly MarkFinding[] {
    return this.#tool.marks(markedNode(object, toolNodes), tool, this.#io.clock.now());
  }

  /**
   * Removes the tool's marks with one patch, which fails on a concurrent write; the node is then
   * evaluated again.
   */
  async #takeOff(
    object: KubeObject,
    given: { readonly tool: ToolState; readonly toolNodes: ReadonlySet<string> },
  ): Promise<void> {
    const name = object.metadata?.name ?? "";
    const path = paths.nodePath(name);
    await this.#try(`${name} keeps its marks`, async () => {
      let latest = object;
      for (let attempt = 1; ; attempt += 1) {
        const finding = this.#findings(latest, given).find((one) => one.kind === "Leftover");
        if (finding === undefined) return;
        const request = patchOf(latest, finding.leftover);
        const answer = await this.#connection.api.send(request);
        if (answer.status < 300) {
          return this.#say(`removed ${leftoverText(finding.leftover)} from ${name}`);
        }
        if (answer.status !== 409 || attempt === attempts) throw apiError(request, answer);
        latest = (await this.#send({ method: "GET", path })) as KubeObject;
      }
    });
  }

  async #send(request: KubeRequest): Promise<unknown> {
    const answer = await this.#connection.api.send(request);
    if (answer.status >= 300) throw apiError(request, answer);
    return answer.body;
  }

  /** Reports the error of one node, and continues with the others. */
  async #try(whatNot: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (this.#io.signal.aborted) throw error;
      this.#failures += 1;
      this.#say(`${whatNot}: ${messageOf(error)}`);
    }
  }

  #say(sentence: string): void {
    this.#io.err(`lastcall: ${nameOf(sentence)}\n`);
  }
}

function changedByOthers(policy: string, message: string): LastcallError {
  // The API server writes one line per field.
  const found = message.replaceAll(/\s+/g, " ");
  return new LastcallError(
    "CONFLICT",
    `Cannot apply departurepolicy/${policy}: others have changed it (${found}) and nothing more was done, delete it, or run this command without --apply and pipe its output into kubectl apply --server-side --force-conflicts -f -`,
  );
}

/** How long two of the killer's drains take, plus the longest pause between its rounds. */
function busyFor(policies: readonly Policy[]): number {
  const drains = policies.map(({ drain }) => drain.timeoutMs);
  return 2 * Math.max(0, ...drains) + minutes(15);
}

function markedNode(object: KubeObject, toolNodes: ReadonlySet<string>): MarkedNode {
  const meta = fieldsOf(object.metadata);
  const spec = fieldsOf(object.spec);
  const name = textOf(meta.name) ?? "";
  return {
    name,
    annotations: textMapOf(meta.annotations),
    labels: textMapOf(meta.labels),
    taintKeys: listOf(spec.taints).map((taint) => textOf(fieldsOf(taint).key) ?? ""),
    unschedulable: spec.unschedulable === true,
    createdAt: instantOf(meta.creationTimestamp),
    hasToolPod: toolNodes.has(name),
  };
}

function patchOf(object: KubeObject, leftover: Leftover): KubeRequest {
  const absent = (keys: readonly string[]) => Object.fromEntries(keys.map((key) => [key, null]));
  const taints = listOf(fieldsOf(object.spec).taints).filter(
    (taint) => !leftover.taintKeys.includes(textOf(fieldsOf(taint).key) ?? ""),
  );
  return {
    method: "PATCH",
    path: paths.nodePath(object.metadata?.name ?? ""),
    patchType: "application/merge-patch+json",
    body: {
      metadata: {
        resourceVersion: object.metadata?.resourceVersion,
        ...(leftover.annotations.length > 0 && { annotations: absent(leftover.annotations) }),
        ...(leftover.labels.length > 0 && { labels: absent(leftover.labels) }),
      },
      spec: {
        ...(leftover.uncordon && { unschedulable: null }),
        ...(leftover.taintKeys.length > 0 && { taints: taints.length === 0 ? null : taints }),
      },
    },
  };
}

/** A tool that can be migrated from. */
export interface Tool {
  readonly name: "estafette" | "nth";
  /** A part of its image's name. */
  readonly image: string;
  readonly ofValues: (values: unknown, file: string) => ToolSetup;
  readonly ofWorkload: (
    workload: ToolWorkload,
    objects: readonly ManifestObject[],
    place: string,
  ) => ToolSetup;
  /** Throws INPUT_INVALID if a limit cannot be parsed. */
  readonly translate: (setup: ToolSetup) => Translation;
  readonly marks: (node: MarkedNode, tool: ToolState, now: Instant) => readonly MarkFinding[];
}

const tools: readonly Tool[] = [
  {
    ...{ name: "estafette", image: killerImage, translate: translateKiller, marks: killerMarks },
    ...{ ofValues: killerValuesSetup, ofWorkload: killerWorkloadSetup },
  },
  {
    ...{ name: "nth", image: handlerImage, translate: translateHandler, marks: handlerMarks },
    ...{ ofValues: handlerValuesSetup, ofWorkload: handlerWorkloadSetup },
  },
];

export function toolNamed(name: string | undefined): Tool {
  const found = tools.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new LastcallError(
    "USAGE",
    `Cannot migrate from ${JSON.stringify(name)}: it is not known, expected estafette or nth`,
  );
}
