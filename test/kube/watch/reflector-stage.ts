import type { KubeAnswer, KubeObject, KubeWatchEvent } from "../../../src/contracts/kube-api.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { ObjectChange, SkippedObject } from "../../../src/kube/watch/collection.ts";
import { Reflector, type ReflectorOptions } from "../../../src/kube/watch/reflector.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { type AnswerScript, ScriptedApi } from "../../support/scripted-api.ts";

/** What the reflector of these tests keeps of an object. */
export interface Fact {
  readonly name: string;
  readonly version: string;
}

export function object(
  name: string,
  resourceVersion: string,
  more: Partial<KubeObject> = {},
): KubeObject {
  return { metadata: { name, uid: `uid-${name}`, resourceVersion }, ...more };
}

export function page(
  resourceVersion: string,
  items: readonly KubeObject[],
  token = "",
): KubeAnswer {
  return { status: 200, body: { metadata: { resourceVersion, continue: token }, items } };
}

export function refused(status: number, more: object = {}): KubeAnswer {
  return { status, body: { kind: "Status", code: status, message: "said", ...more } };
}

export function event(type: KubeWatchEvent["type"], name: string, version: string): KubeWatchEvent {
  return { type, object: object(name, version) };
}

export function bookmark(resourceVersion: string): KubeWatchEvent {
  return { type: "BOOKMARK", object: { metadata: { resourceVersion } } };
}

export function errorEvent(code: number, more: object = {}): KubeWatchEvent {
  return { type: "ERROR", object: { kind: "Status", code, message: "said", ...more } };
}

function translate(from: KubeObject): Fact {
  if (from.spec === "odd") throw new Error("odd");
  return { name: from.metadata?.name ?? "", version: from.metadata?.resourceVersion ?? "" };
}

export function setUp(answer: AnswerScript, options: Partial<ReflectorOptions<Fact>> = {}) {
  const api = new ScriptedApi(answer);
  const clock = new ManualClock();
  const changes: ObjectChange<Fact>[] = [];
  const skipped: SkippedObject[] = [];
  const troubles: string[] = [];
  const reflector = new Reflector<Fact>({
    api,
    clock,
    rng: seededRng(1),
    path: "/api/v1/nodes",
    translate,
    onChange: (change) => changes.push(change),
    onSkip: (skip) => skipped.push(skip),
    onError: (error) => troubles.push(error.code),
    ...options,
  });
  const stop = new AbortController();
  const run = reflector.run(stop.signal);
  run.catch(() => {});
  return { api, clock, changes, skipped, troubles, reflector, stop, run };
}

export function names(reflector: Reflector<Fact>): string[] {
  return [...reflector.items().values()].map((fact) => `${fact.name}@${fact.version}`);
}

/** The changes in short form. */
export function shortly(changes: readonly ObjectChange<Fact>[]): string[] {
  return changes.map((change) =>
    change.kind === "Set"
      ? `set ${change.item.name}@${change.item.version}`
      : `removed ${change.before.name}`,
  );
}
