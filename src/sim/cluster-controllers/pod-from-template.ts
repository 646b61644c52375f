import type { ModelObject } from "../api/model-object.ts";
import { ownerReferenceTo, type TemplateObject } from "./cluster-object.ts";

/** The body of a pod that `owner` creates from its template; `name` ends in `-` where it is a base. */
export function podFromTemplate(
  owner: ModelObject,
  parts: {
    readonly template: TemplateObject;
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly spec?: object;
  },
): object {
  const { template, name, labels, spec } = parts;
  const naming = name.endsWith("-") ? { generateName: name } : { name };
  return {
    metadata: {
      ...naming,
      labels: { ...template.metadata?.labels, ...labels },
      ...(template.metadata?.annotations ? { annotations: template.metadata.annotations } : {}),
      ownerReferences: [ownerReferenceTo(owner)],
    },
    spec: { ...template.spec, ...spec },
  };
}

/** A short name of a template's content, the same for the same content (FNV-1a). */
export function templateHash(template: TemplateObject): string {
  let hash = 0x811c9dc5;
  for (const letter of JSON.stringify(template)) {
    hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash.toString(36).padStart(7, "0");
}
