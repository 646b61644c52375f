import type { ActionPorts } from "../contracts/action-runner.ts";
import type { ReleaserChoice } from "../contracts/cloud/instance-releaser.ts";
import type { LifecycleHooks } from "../contracts/cloud/lifecycle-hooks.ts";
import type {
  ClusterCapacity,
  Placeholders,
  VolumeAttachments,
} from "../contracts/cluster-capacity.ts";
import type { DepartureStore } from "../contracts/departure-store.ts";
import type { NodeMarks } from "../contracts/node-marks.ts";
import type { NodePods } from "../contracts/node-pods.ts";

/** The executor's dependencies. Assembled by the command, or by tests with the model cluster. */
export interface ClusterPorts {
  readonly marks: NodeMarks;
  readonly pods: NodePods;
  readonly store: DepartureStore;
  readonly placeholders: Placeholders;
  /** These two are read-only. */
  readonly capacity: ClusterCapacity;
  readonly attachments: VolumeAttachments;
  readonly releaserFor: ReleaserChoice;
  /** Absent: lifecycle hooks are not completed. */
  readonly hooks?: LifecycleHooks | undefined;
  /** Absent: actions cannot be run. */
  readonly actionPorts?: ActionPorts | undefined;
}
