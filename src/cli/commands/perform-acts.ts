import type { BoardAct } from "../../board/act/act.ts";
import { OperatorActs } from "../../board/act/operator-acts.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { inEnglish } from "../../core/reason/english.ts";
import {
  instantOfNamedTime,
  isRelative,
  type NamedTime,
  sayLocally,
} from "../../core/time/named-time.ts";
import { briefInstant, type Instant, type Millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { KubeDepartureStore, KubeOperatorWrites } from "../../kube/departure-store.ts";
import { dryRunApi } from "../../kube/dry-run.ts";
import { KubeNodePods } from "../../kube/node/node-pods.ts";
import { ClusterClock } from "../cluster/connect.ts";
import { type CommandIo, printData } from "../command-line/command.ts";
import type { FleetSnapshot } from "../input/fleet-snapshot.ts";

/** When a hold or a freeze ends; null: never by itself. Throws USAGE for a time that has passed. */
export function endOf(
  options: {
    readonly until: NamedTime | undefined;
    readonly for: Millis | undefined;
    readonly quiet: boolean;
  },
  { io, now }: { readonly io: CommandIo; readonly now: Instant },
): Instant | null {
  const time: NamedTime | undefined =
    options.for === undefined ? options.until : { kind: "In", spanMs: options.for };
  if (time === undefined) return null;
  if (time.kind === "Now") {
    const problem = "it would end at once, expected a future time, or --undo to end it now";
    throw new LastcallError("USAGE", `Cannot use --until now: ${problem}`);
  }
  const context = { now, timeZone: io.timeZone ?? "UTC" };
  const at = instantOfNamedTime(time, context);
  if (at <= now) {
    throw new LastcallError(
      "USAGE",
      `Cannot use --until ${briefInstant(at)}: it is in the past, expected a future time`,
    );
  }
  if (isRelative(time) && !options.quiet) io.err(`lastcall: until ${sayLocally(at, context)}\n`);
  return at;
}

export interface ActsSource {
  readonly api: KubeApi;
  readonly fleet: FleetSnapshot;
  readonly io: CommandIo;
  readonly dryRun: boolean;
  readonly undo: boolean;
  readonly quiet: boolean;
  readonly output: "table" | "json" | "yaml";
}

/** What a command does, and what it leaves as it is. */
export interface MeantActs {
  readonly acts: readonly BoardAct[];
  /** Why there is nothing to do, one sentence for each. */
  readonly idle: readonly string[];
}

interface ShownAct {
  readonly act: BoardAct;
  /** Its effects, the main one first. */
  readonly says: readonly string[];
}

/**
 * Previews the acts as the board does, and performs them; in a dry run the API server stores
 * nothing. Previews all before anything is written. Attempts every write, and throws the first
 * refusal at the end.
 */
export async function performActs(meant: MeantActs, source: ActsSource): Promise<number> {
  const board = boardActs(source);
  const looked = await Promise.all(
    meant.acts.map(async (act) => ({ act, preview: await board.preview(act) })),
  );
  const refusal = looked.find(({ preview }) => preview.refusal !== null)?.preview.refusal;
  if (refusal) throw new LastcallError("CONFLICT", inEnglish(refusal));
  const done: ShownAct[] = [];
  const refused: string[] = [];
  for (const { act, preview } of looked) {
    const answer = await board.perform({ act, seen: preview.seen, key: JSON.stringify(act) });
    if (answer.kind === "Done") done.push({ act, says: preview.says.map(inEnglish) });
    else refused.push(`Cannot write ${targetOf(act)}: ${asReason(inEnglish(answer.says))}`);
  }
  await show(done, { ...source, idle: meant.idle });
  const [first, ...others] = refused;
  for (const one of others) source.io.err(`lastcall: ${one}\n`);
  if (first !== undefined) throw new LastcallError("CONFLICT", first);
  return 0;
}

function boardActs({ fleet, io, ...source }: ActsSource): OperatorActs {
  const api = source.dryRun ? dryRunApi(source.api) : source.api;
  const clock = new ClusterClock(api, io.clock);
  return new OperatorActs({
    fleet: {
      node: (name) => fleet.nodes.find((node) => node.name === name),
      departure: (uid) => fleet.departures.find((one) => one.uid === uid),
      departuresOf: (uid) => fleet.departures.filter(({ node }) => node.uid === uid),
      policies: () => fleet.policies,
      view: () => fleet,
    },
    pods: new KubeNodePods({ api, clock, rng: io.rng }),
    store: new KubeDepartureStore(api),
    writes: new KubeOperatorWrites(api),
    now: () => fleet.readAt,
  });
}

/** A sentence of its own, inside another one. */
function asReason(says: string): string {
  return says.replace(/^Cannot /, "cannot ");
}

function targetOf(act: BoardAct): string {
  switch (act.kind) {
    case "Freeze":
      return `departurepolicy/${act.policy}`;
    case "Withdraw":
      return `departure/${act.departure}`;
    default:
      return `node/${act.node}`;
  }
}

/** What a preview lacks, because the caller may not read it. */
function unknown({ fleet: { unlisted = [] }, undo }: ActsSource): readonly string[] {
  if (unlisted.length === 0 || undo) return [];
  const rights = new Intl.ListFormat("en").format(unlisted);
  return [`What leaves even so is not known in full: grant list on ${rights} to see it`];
}

/** The main effect of each act is data; what all of them have in common is said once. */
async function show(
  done: readonly ShownAct[],
  about: ActsSource & { readonly idle: readonly string[] },
): Promise<void> {
  const { io, output, quiet, dryRun, idle } = about;
  const notes = new Set([...done.flatMap(({ says }) => says.slice(1)), ...unknown(about), ...idle]);
  if (!quiet) for (const note of notes) io.err(`lastcall: ${note}\n`);
  if (output === "table") {
    for (const { says } of done) io.out(`${says[0]}${dryRun ? " (dry run)" : ""}\n`);
    return;
  }
  const items = done.map(({ act, says }) => ({ target: targetOf(act), says }));
  await printData(
    { apiVersion: "lastcall.dev/v1alpha1", kind: "ActReport", dryRun, items },
    output,
    io,
  );
}
