import { jsonEqual } from "../api/json-equal.ts";
import type { ModelObject } from "../api/model-object.ts";
import { isActive, keyOf, type PodObject, type WorkloadObject } from "./cluster-object.ts";
import type { ControllerLoop, ModelController } from "./controller-loop.ts";
import type { OwnerIndex } from "./owner-index.ts";
import { podFromTemplate } from "./pod-from-template.ts";
import { ownerKeys } from "./replica-set-controller.ts";

const storage = "jobs.batch";

/** Runs pods until enough of them have succeeded; one that is lost is started again. */
export class JobController implements ModelController {
  readonly name = "job";
  readonly concerns = {
    [storage]: ({ object }: { object: ModelObject }) => [keyOf(object)],
    pods: ({ object }: { object: ModelObject }) => ownerKeys(object, "Job"),
  };
  readonly #loop: ControllerLoop;
  readonly #pods: OwnerIndex;

  constructor(loop: ControllerLoop, pods: OwnerIndex) {
    this.#loop = loop;
    this.#pods = pods;
  }

  reconcile(key: string): void {
    const job = this.#loop.get<WorkloadObject>(storage, key);
    if (!job || job.metadata.deletionTimestamp !== undefined) return;
    const owned = this.#pods.ownedBy(job.metadata.uid) as readonly PodObject[];
    const active = owned.filter(isActive).length;
    const succeeded = owned.filter((pod) => pod.status.phase === "Succeeded").length;
    const failed = owned.filter((pod) => pod.status.phase === "Failed").length;
    const { completions = 1, parallelism = 1 } = job.spec;
    const complete = succeeded >= completions;
    const conditions = complete ? [{ type: "Complete", status: "True" }] : undefined;
    const status = { active, succeeded, failed, ...(conditions ? { conditions } : {}) };
    if (!jsonEqual(status, job.status)) this.#loop.put(storage, { ...job, status });
    const wanted = complete ? 0 : Math.min(parallelism, completions - succeeded);
    for (let made = active; made < wanted; made += 1) this.#create(job);
  }

  #create(job: WorkloadObject): void {
    const { name, namespace = "" } = job.metadata;
    const labels = { "batch.kubernetes.io/job-name": name, "job-name": name };
    const body = podFromTemplate(job, { template: job.spec.template, name: `${name}-`, labels });
    this.#loop.create({ type: this.#loop.type("v1", "pods"), namespace, body });
  }
}
