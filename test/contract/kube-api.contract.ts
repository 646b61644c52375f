/**
 * What a Kubernetes API is to Lastcall, in sentences that the model cluster and a real API server
 * both pass. Expectations come from the server's source and documents, never from the model.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { KubeApi } from "../../src/contracts/kube-api.ts";
import { customResourceSentences } from "./kube-api/custom-resource.ts";
import { deletionSentences } from "./kube-api/deletion.ts";
import { evictionSentences } from "./kube-api/eviction.ts";
import { listSentences } from "./kube-api/list.ts";
import { objectSentences } from "./kube-api/object.ts";
import { patchSentences } from "./kube-api/patch.ts";
import { watchSentences } from "./kube-api/watch.ts";

/** Sentences that a target may be unable to keep; it says why. */
export type KubeApiGap =
  /** Rules in CEL are not evaluated. */
  | "Cel"
  /** Owners of fields are not tracked, so server-side apply never conflicts. */
  | "FieldOwners"
  /** A budget that no controller has observed cannot be held still: one observes it at once. */
  | "UnobservedBudget"
  /** The history of changes cannot be shortened at will, so nothing is "too old". */
  | "Compaction";

export interface KubeApiTarget {
  readonly api: KubeApi;
  /** A namespace that exists, is empty, takes pods, and is the suite's own. */
  readonly namespace: string;
  readonly gaps: Readonly<Partial<Record<KubeApiGap, string>>>;
  /** Makes versions from before now too old, where the target can. */
  readonly compactHistory?: () => Promise<void> | void;
  readonly close: () => Promise<void>;
}

/** Runs the suite; the target is made once and closed at the end. */
export function kubeApiContract(name: string, makeTarget: () => Promise<KubeApiTarget>): void {
  describe(`${name} as a Kubernetes API`, () => {
    let made: KubeApiTarget | undefined;
    beforeAll(async () => {
      made = await makeTarget();
    }, 120_000);
    afterAll(() => made?.close());
    const target = (): KubeApiTarget => {
      if (made === undefined) throw new Error("the target is not made yet");
      return made;
    };
    objectSentences(target);
    listSentences(target);
    patchSentences(target);
    deletionSentences(target);
    evictionSentences(target);
    watchSentences(target);
    customResourceSentences(target);
  });
}
