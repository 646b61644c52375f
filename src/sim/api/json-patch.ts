import { badRequest, patchRefused } from "./api-refusal.ts";
import { isRecord } from "./frozen-copy.ts";
import { jsonEqual } from "./json-equal.ts";

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** A list of operations is applied whole or not at all; what does not change is shared. */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) {
    throw badRequest(
      "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
    );
  }
  return patch.reduce((current, operation) => applyOperation(current, operation), document);
}

/** RFC 6902; each refusal is the server's 422, which names neither the operation nor the path. */
function applyOperation(document: unknown, operation: Operation): unknown {
  const path = pointerOf(operation.path);
  switch (operation.op) {
    case "add":
      return edit(document, { path, change: (parent, key) => added(parent, key, operation.value) });
    case "replace":
      return edit(document, {
        path,
        change: (parent, key) => replaced(parent, key, operation.value),
      });
    case "remove":
      return edit(document, { path, change: removed });
    case "test":
      if (!jsonEqual(read(document, path) ?? null, operation.value ?? null)) throw patchRefused();
      return document;
    case "copy":
      return copyTo(document, path, mustRead(document, pointerOf(operation.from)));
    case "move": {
      const from = pointerOf(operation.from);
      return copyTo(
        edit(document, { path: from, change: removed }),
        path,
        mustRead(document, from),
      );
    }
    default:
      // The server decodes an unknown operation and refuses it only when it applies it.
      throw patchRefused();
  }
}

function copyTo(document: unknown, path: readonly string[], value: unknown): unknown {
  return edit(document, { path, change: (parent, key) => added(parent, key, value) });
}

function pointerOf(pointer: unknown): readonly string[] {
  if (typeof pointer !== "string") throw patchRefused();
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw patchRefused();
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

interface Edit {
  readonly path: readonly string[];
  readonly change: (parent: unknown, key: string) => unknown;
}

/** Copies the containers on the way down and changes the last one. */
function edit(container: unknown, { path, change }: Edit): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return change({ "": container }, "");
  if (rest.length === 0) return change(container, key);
  const inner = edit(mustRead(container, [key]), { path: rest, change });
  return replaced(container, key, inner);
}

function read(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const key of path) value = member(value, key);
  return value;
}

function mustRead(document: unknown, path: readonly string[]): unknown {
  const value = read(document, path);
  if (value === undefined) throw patchRefused();
  return value;
}

function member(container: unknown, key: string): unknown {
  if (Array.isArray(container)) return container[indexOf(key, container.length - 1)];
  return isRecord(container) && Object.hasOwn(container, key) ? container[key] : undefined;
}

function added(container: unknown, key: string, value: unknown): unknown {
  if (Array.isArray(container)) {
    const at = key === "-" ? container.length : indexOf(key, container.length);
    return container.toSpliced(at, 0, value);
  }
  if (!isRecord(container)) throw patchRefused();
  return { ...container, [key]: value };
}

function replaced(container: unknown, key: string, value: unknown): unknown {
  if (member(container, key) === undefined) throw patchRefused();
  if (Array.isArray(container)) return container.with(indexOf(key, container.length - 1), value);
  return { ...(container as object), [key]: value };
}

function removed(container: unknown, key: string): unknown {
  if (member(container, key) === undefined) throw patchRefused();
  if (Array.isArray(container)) return container.toSpliced(indexOf(key, container.length - 1), 1);
  const { [key]: _gone, ...rest } = container as Record<string, unknown>;
  return rest;
}

function indexOf(key: string, last: number): number {
  const index = /^\d+$/.test(key) ? Number(key) : -1;
  if (index < 0 || index > last) throw patchRefused();
  return index;
}
