/**
 * What Lastcall expects of a Kubernetes API: tests that the model cluster and a real API server
 * both pass. The expectations come from the server's source and documentation, never from the
 * model.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { customResourceSentences } from "./kube-api/custom-resource.ts";
import { deletionSentences } from "./kube-api/deletion.ts";
import type { TargetOf } from "./kube-api/dialog.ts";
import { disruptionSentences } from "./kube-api/disruption.ts";
import { evictionSentences } from "./kube-api/eviction.ts";
import { listSentences } from "./kube-api/list.ts";
import { objectSentences } from "./kube-api/object.ts";
import { patchSentences } from "./kube-api/patch.ts";
import { schedulingSentences } from "./kube-api/scheduling.ts";
import type { KubeApiTarget } from "./kube-api/target.ts";
import { watchSentences } from "./kube-api/watch.ts";

type Sentences = readonly ((target: TargetOf) => void)[];

/** What an API server does by itself. */
export const serverSentences: Sentences = [
  objectSentences,
  listSentences,
  patchSentences,
  deletionSentences,
  evictionSentences,
  watchSentences,
  customResourceSentences,
];

/** What the controllers of a control plane add. */
export const controllerSentences: Sentences = [disruptionSentences, schedulingSentences];

/** Runs the sentences; the target is created once and closed at the end. */
export function kubeApiContract(
  name: string,
  makeTarget: () => Promise<KubeApiTarget>,
  allSentences: Sentences = serverSentences,
): void {
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
    for (const sentences of allSentences) sentences(target);
  });
}
