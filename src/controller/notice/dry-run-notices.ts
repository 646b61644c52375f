import type { Clock } from "../../contracts/clock.ts";
import type { FleetView } from "../../contracts/cluster.ts";
import type { EventSink } from "../../contracts/telemetry.ts";
import type { NewDeparture } from "../../core/departure/decision.ts";
import { type Departure, isLive, isNoticed } from "../../core/departure/departure.ts";
import { policyFor } from "../../core/notice/interruption.ts";
import { callsOfMarks } from "../../core/notice/node-notice.ts";
import { endAfter, reasonNotToStart, tellIfLeft } from "./interruptions.ts";

/**
 * In a dry run of the controller: reports each notice as under a policy in dry run, whose departure
 * ends without a start. What would be written is kept in memory, so that it is reported once.
 */
export class DryRunNotices {
  readonly #events: EventSink;
  readonly #clock: Clock;
  /** The departures as they would have ended, by uid. */
  #ended: ReadonlyMap<string, Departure> = new Map();

  constructor({ events, clock }: { readonly events: EventSink; readonly clock: Clock }) {
    this.#events = events;
    this.#clock = clock;
  }

  /** The departures as they would be, after a look at the notices of all nodes. */
  look(view: FleetView): readonly Departure[] {
    const before = this.#withEnded(view);
    const nodes = new Map(view.nodes.map((node) => [node.name, node]));
    const after = [...before, ...this.#made(view, before)].map((departure) => {
      if (!isLive(departure) || !isNoticed(departure)) return departure;
      const policy = policyFor(departure, nodes.get(departure.node.name), view.policies);
      return this.#end(departure, { ...policy, dryRun: true });
    });
    const live = new Set(view.departures.filter(isLive).map(({ uid }) => uid));
    const isOurs = ({ uid, resourceVersion }: Departure) => resourceVersion === "" || live.has(uid);
    const ended = after.filter((one) => !isLive(one) && isOurs(one));
    this.#ended = new Map(ended.map((one) => [one.uid, one]));
    return after;
  }

  /** Forgets departures that would have been made for nodes that are gone. */
  #withEnded({ nodes, departures }: FleetView): readonly Departure[] {
    const uids = new Set(nodes.map(({ uid }) => uid));
    const made = [...this.#ended.values()].filter((one) => one.resourceVersion === "");
    return [
      ...departures.map((one) => {
        const status = isLive(one) ? this.#ended.get(one.uid)?.status : undefined;
        return status === undefined ? one : { ...one, status };
      }),
      ...made.filter(({ node }) => uids.has(node.uid)),
    ];
  }

  /** The departures that would be made for the platform's marks on nodes. */
  #made({ nodes, policies }: FleetView, departures: readonly Departure[]): readonly Departure[] {
    const ofNode = Map.groupBy(departures, ({ node }) => node.uid);
    const calls = callsOfMarks(nodes, {
      ...{ policies, at: this.#clock.now() },
      departuresOf: (uid) => ofNode.get(uid) ?? [],
      departureNamed: (name) => departures.find((one) => one.name === name),
    });
    return calls.flatMap((call) => (call.kind === "Make" ? [this.#make(call.order)] : []));
  }

  #make({ reason: _, message, ...order }: NewDeparture): Departure {
    const { name, uid } = order.node;
    const about = { kind: "Node", name, uid } as const;
    this.#events.emit({ type: "Normal", reason: "DepartureScheduled", message, about });
    return {
      ...order,
      ...{ uid: order.name, resourceVersion: "", hold: false },
      createdAt: this.#clock.now(),
      status: { phase: "Scheduled", timeline: [] },
    };
  }

  #end(departure: Departure, policy: Parameters<typeof reasonNotToStart>[1]): Departure {
    const why = reasonNotToStart(departure, policy);
    const at = this.#clock.now();
    const status = why && endAfter(departure, policy, { ...why, at });
    if (status === undefined) return departure;
    tellIfLeft({ departure, policy, left: status }, { events: this.#events });
    return { ...departure, status };
  }
}
