import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DrainDriver } from "../../src/agent/drain-driver.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { EvictionAnswer } from "../../src/core/drain/drain-answer.ts";
import type { DrainAct } from "../../src/core/drain/drain-progress.ts";
import type { DrainStep } from "../../src/core/drain/drain-step.ts";
import { TerminationMemory } from "../../src/core/drain/drain-time.ts";
import { minutes, plus } from "../../src/core/time/time.ts";
import { anyCourse } from "../core/drain/any-course.ts";
import {
  courseWorld,
  type DrainCourse,
  playEvent,
  roundsOf,
  type SentRequest,
} from "../core/drain/drain-course.ts";
import { budget, node, pod, rule, startAt } from "../core/drain/drain-scene.ts";
import { drainBy, type HeldDrain } from "../core/drain/held-drain.ts";

const job = pod("job", { labels: { app: "job" }, startedAt: plus(startAt, minutes(-60)) });
const web = pod("web");
const marked = pod("marked", {
  annotations: { "cluster-autoscaler.kubernetes.io/safe-to-evict": "true" },
});

const waits = rule({
  podRules: [
    { selector: { matchLabels: { app: "job" } }, action: "WaitCompleted", timeoutMs: minutes(10) },
  ],
});

/** A planned drain whose acts are not carried out; each step gets the pods that are left. */
function drainOf() {
  let now = startAt;
  const driver = new DrainDriver({
    actor: {} as never,
    now: () => now,
    rng: seededRng(1),
    terminations: new TerminationMemory(),
  });
  return (afterMinutes: number, livePods: readonly PodFacts[]): DrainStep => {
    now = plus(startAt, minutes(afterMinutes));
    const pods = {
      node: node(),
      livePods,
      ownPods: livePods,
      budgets: [budget("web", { disruptionsAllowed: 0 })],
    };
    const times = { startedAt: startAt, deadlineAt: undefined, knownAt: startAt };
    return driver.step({ ...pods, ...times, rule: waits, isNoticed: false }).step;
  };
}

const asked = ({ acts }: DrainStep) => acts.map(({ kind, pod: { name } }) => `${kind} ${name}`);

it("the wait for a job is not extended by a new plan", () => {
  const at = drainOf();
  expect(asked(at(0, [job, marked]))).toEqual(["Evict marked"]);
  // The plan changes, as the marked pod is gone.
  at(4, [job]);
  expect(asked(at(9.99, [job]))).toEqual([]);
  expect(asked(at(10, [job]))).toEqual(["Evict job"]);
});

it("a job whose mark expires during the drain is waited for as if it had none", () => {
  const at = drainOf();
  const annotations = { "lastcall.dev/do-not-disturb": "1h5m" };
  const held = { ...job, annotations };
  expect(asked(at(0, [held]))).toEqual([]);
  expect(asked(at(5, [held]))).toEqual([]);
  expect(asked(at(9.99, [held]))).toEqual([]);
  expect(asked(at(10, [held]))).toEqual(["Evict job"]);
});

it("the timeout counts from the end of a wait, even if a newer plan has no wait", () => {
  const at = drainOf();
  at(0, [job, marked, web]);
  at(9, [web]);
  expect(at(14.99, [web]).verdict).toBe("Running");
  expect(at(15, [web]).verdict).toBe("TimedOut");
});

it("a pod that is recreated on the node despite the cordon is not evicted again, nor waited for", () => {
  const at = drainOf();
  const loose = { labels: {}, tolerations: [{ operator: "Exists" as const }] };
  const [first, second] = [pod("first", loose), pod("second", loose)];
  expect(asked(at(0, [first]))).toEqual(["Evict first"]);
  expect(asked(at(0.1, [first, second]))).toEqual([]);
  expect(at(0.2, [second]).verdict).toBe("Done");
});

interface OpenRequest {
  readonly onTurn: () => number | undefined;
  readonly resolve: (answer: EvictionAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** A driver whose requests stay open until somebody gives them their turn and their response. */
class OpenDrain {
  now = startAt;
  driver: DrainDriver;
  readonly #requests = new Map<DrainAct, OpenRequest>();
  readonly #rng = seededRng(1);
  #queued: DrainAct | undefined;

  constructor() {
    this.driver = this.begun();
  }

  begun(): DrainDriver {
    const actor = {
      evict: (_: unknown, { graceSeconds }: { graceSeconds: () => number | undefined }) =>
        this.#open(graceSeconds),
      remove: (_: unknown, { graceSeconds }: { graceSeconds: () => number | undefined }) =>
        this.#open(graceSeconds),
      restartOwner: (_: unknown, __: unknown, { onTurn }: { onTurn: () => void }) =>
        this.#open(() => {
          onTurn();
          return undefined;
        }),
    };
    const [now, terminations] = [() => this.now, new TerminationMemory()];
    return new DrainDriver({ actor, now, rng: this.#rng, terminations });
  }

  queue(act: DrainAct, signal?: AbortSignal): Promise<EvictionAnswer | undefined> {
    this.#queued = act;
    return this.driver.carryOut(act, { signal });
  }

  turn(act: DrainAct): number | undefined {
    return this.#requests.get(act)?.onTurn();
  }

  answer(act: DrainAct, answer: EvictionAnswer): void {
    const request = this.#requests.get(act);
    if (answer.kind === "NoAnswer") request?.reject(new Error(answer.message));
    else request?.resolve(answer);
  }

  #open(onTurn: () => number | undefined): Promise<EvictionAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#queued !== undefined) this.#requests.set(this.#queued, { onTurn, resolve, reject });
    });
  }
}

function drivenDrain(): HeldDrain {
  const open = new OpenDrain();
  return {
    get memory() {
      return open.driver.memory;
    },
    step({ known: _, now, ...seen }) {
      open.now = now;
      return open.driver.step(seen).step;
    },
    queue(act) {
      void open.queue(act);
    },
    sent(act, now) {
      open.now = now;
      return open.turn(act);
    },
    answered(act, { answer, now }) {
      open.now = now;
      open.answer(act, answer);
    },
    killed() {
      open.driver = open.begun();
    },
  };
}

/** Steps, requests as they are sent, and the memory after each event. */
async function traceOf(course: DrainCourse, drain: HeldDrain): Promise<readonly string[]> {
  const trace: string[] = [];
  const witness = {
    stepped: (step: DrainStep) => trace.push(JSON.stringify(step)),
    sent: (act: DrainAct, { graceSeconds, now }: SentRequest) => {
      // A restart has no grace period.
      const its = act.kind === "RestartOwner" ? undefined : graceSeconds;
      trace.push(JSON.stringify([act, its, now]));
    },
  };
  const world = courseWorld(course);
  for (const event of course.events) {
    for (const one of event.kind === "Rounds" ? roundsOf(event, world) : [event]) {
      playEvent(one, { course, world, drain, witness });
      await settled();
      trace.push(JSON.stringify(drain.memory));
    }
  }
  return trace;
}

/** A response has passed through the promises of the driver. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("a driver", () => {
  it("sends and remembers what the transitions decide, on 100 random drains", async () => {
    await fc.assert(
      fc.asyncProperty(anyCourse({ kills: "Some" }), async (course) => {
        expect(await traceOf(course, drivenDrain())).toEqual(await traceOf(course, drainBy()));
      }),
      { numRuns: 100 },
    );
  });

  it("refuses the turn of a request whose drain has ended, and the request counts as lost", async () => {
    const open = new OpenDrain();
    const act = evictionOf(open);
    const carried = open.queue(act);
    open.driver.end();
    expect(() => open.turn(act)).toThrow(expect.objectContaining({ code: "INTERRUPTED" }));
    open.answer(act, { kind: "NoAnswer", message: "its drain has ended" });
    expect(await carried).toEqual({ kind: "NoAnswer", message: "its drain has ended" });
  });

  it("does not record a response that comes after an abort", async () => {
    const open = new OpenDrain();
    const act = evictionOf(open);
    const aborted = new AbortController();
    const carried = open.queue(act, aborted.signal);
    const before = open.driver.memory;
    aborted.abort();
    open.answer(act, { kind: "Gone" });
    expect(await carried).toBeUndefined();
    expect(open.driver.memory).toBe(before);
  });
});

function evictionOf({ driver }: OpenDrain): DrainAct {
  const livePods = [web];
  const { step } = driver.step({
    ...{ node: node(), livePods, ownPods: livePods, budgets: [], rule: rule() },
    ...{ startedAt: startAt, deadlineAt: undefined, knownAt: startAt, isNoticed: false },
  });
  const [act] = step.acts;
  if (act === undefined) throw new Error("the drain asks for nothing");
  return act;
}
