/**
 * What Lastcall expects of a Kubernetes API: tests that the model cluster and a real API server
 * both pass. The expectations come from the server's source and documentation, never from the
 * model.
 */
import { afterAll, beforeAll, describe } from "vitest";
import { customResourceSentences } from "./kube-api/custom-resource.ts";
import { deletionSentences } from "./kube-api/deletion.ts";
import { evictionSentences } from "./kube-api/eviction.ts";
import { listSentences } from "./kube-api/list.ts";
import { objectSentences } from "./kube-api/object.ts";
import { patchSentences } from "./kube-api/patch.ts";
import type { KubeApiTarget } from "./kube-api/target.ts";
import { watchSentences } from "./kube-api/watch.ts";

/** Runs the suite; the target is created once and closed at the end. */
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
