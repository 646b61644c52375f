import type { Clock } from "../contracts/clock.ts";
import type { FollowedVolumes, VolumeAttachments } from "../contracts/cluster-capacity.ts";
import type { KubeApi, KubeObject } from "../contracts/kube-api.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { AttachedVolume } from "../core/cluster/pod.ts";
import { fieldsOf, textOf } from "../core/json/json-field.ts";
import { attachmentsPath, volumePath } from "./object/paths.ts";
import { ChangeListeners } from "./watch/object-store.ts";
import { Reflector } from "./watch/reflector.ts";

/**
 * VolumeAttachments, of which the API selects none by node: all are listed and watched, and only
 * those of the node are kept.
 */
export class KubeVolumeAttachments implements VolumeAttachments {
  readonly #tools: { readonly api: KubeApi; readonly clock: Clock; readonly rng: Rng };

  constructor(tools: { readonly api: KubeApi; readonly clock: Clock; readonly rng: Rng }) {
    this.#tools = tools;
  }

  follow(nodeName: string, signal: AbortSignal): FollowedVolumes {
    const changes = new ChangeListeners();
    const reflector = new Reflector<AttachedVolume | undefined>({
      ...this.#tools,
      path: attachmentsPath,
      translate: (object) => attachedTo(nodeName, object),
      onChange: () => changes.notify(),
    });
    reflector.run(signal).catch(() => undefined);
    return {
      synced: () => reflector.synced,
      volumes: () => [...reflector.items().values()].flatMap((volume) => volume ?? []),
      onChange: (listener) => changes.listen(listener),
    };
  }

  async claimOf(volume: string): Promise<string | undefined> {
    const answer = await this.#tools.api.send({ method: "GET", path: volumePath(volume) });
    if (answer.status !== 200) return undefined;
    const claim = fieldsOf(fieldsOf((answer.body as KubeObject).spec).claimRef);
    const name = textOf(claim.name);
    return name === undefined ? undefined : `${textOf(claim.namespace) ?? ""}/${name}`;
  }
}

function attachedTo(nodeName: string, object: KubeObject): AttachedVolume | undefined {
  const spec = fieldsOf(object.spec);
  if (spec.nodeName !== nodeName) return undefined;
  const volume = textOf(fieldsOf(spec.source).persistentVolumeName);
  return { name: object.metadata?.name ?? "", volume };
}
