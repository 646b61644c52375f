/**
 * Objects in Kubernetes's protobuf format, which kubectl sends for objects that it creates itself,
 * as in `kubectl create namespace` and `kubectl auth can-i`; it sends files as JSON. Only the kinds
 * of such commands that people try first are supported. Nothing is dropped silently: an object with
 * an unknown kind or field is not read at all. Source: the `generated.proto` files of k8s.io/api
 * and k8s.io/apimachinery 0.36.
 */
type Shape =
  | "text"
  | "number"
  | "boolean"
  /** Set by servers, or empty in everything that kubectl creates. */
  | "ignored"
  | { readonly list: Shape }
  | { readonly textByText: true }
  | { readonly fields: WireFields };
type WireFields = Readonly<Record<number, readonly [name: string, shape: Shape]>>;

const texts: Shape = { list: "text" };
const labels: Shape = { textByText: true };

const metadata: Shape = {
  fields: {
    1: ["name", "text"],
    2: ["generateName", "text"],
    3: ["namespace", "text"],
    4: ["selfLink", "ignored"],
    5: ["uid", "text"],
    6: ["resourceVersion", "text"],
    7: ["generation", "ignored"],
    8: ["creationTimestamp", "ignored"],
    11: ["labels", labels],
    12: ["annotations", labels],
    14: ["finalizers", texts],
  },
};

const port: Shape = {
  fields: {
    1: ["name", "text"],
    2: ["hostPort", "number"],
    3: ["containerPort", "number"],
    4: ["protocol", "text"],
  },
};

const container: Shape = {
  fields: {
    1: ["name", "text"],
    2: ["image", "text"],
    3: ["command", texts],
    4: ["args", texts],
    6: ["ports", { list: port }],
    14: ["imagePullPolicy", "text"],
  },
};

const template: Shape = {
  fields: {
    1: ["metadata", metadata],
    2: [
      "spec",
      {
        fields: {
          2: ["containers", { list: container }],
          3: ["restartPolicy", "text"],
          4: ["terminationGracePeriodSeconds", "number"],
          7: ["nodeSelector", labels],
          8: ["serviceAccountName", "text"],
        },
      },
    ],
  },
};

const deploymentSpec: Shape = {
  fields: {
    1: ["replicas", "number"],
    2: ["selector", { fields: { 1: ["matchLabels", labels] } }],
    3: ["template", template],
    4: ["strategy", { fields: { 1: ["type", "text"] } }],
    5: ["minReadySeconds", "number"],
  },
};

const resourceAttributes: Shape = {
  fields: {
    1: ["namespace", "text"],
    2: ["verb", "text"],
    3: ["group", "text"],
    4: ["version", "text"],
    5: ["resource", "text"],
    6: ["subresource", "text"],
    7: ["name", "text"],
  },
};

const pathAttributes: Shape = { fields: { 1: ["path", "text"], 2: ["verb", "text"] } };

/** `apiVersion/kind` and its fields besides the metadata, which come first in every kind. */
const kinds: Readonly<Record<string, WireFields>> = {
  "v1/Namespace": {
    2: ["spec", { fields: { 1: ["finalizers", texts] } }],
    3: ["status", "ignored"],
  },
  "v1/ConfigMap": { 2: ["data", labels], 4: ["immutable", "boolean"] },
  "v1/ServiceAccount": {},
  "apps/v1/Deployment": { 2: ["spec", deploymentSpec], 3: ["status", "ignored"] },
  "authorization.k8s.io/v1/SelfSubjectAccessReview": {
    2: [
      "spec",
      {
        fields: {
          1: ["resourceAttributes", resourceAttributes],
          2: ["nonResourceAttributes", pathAttributes],
        },
      },
    ],
    3: ["status", "ignored"],
  },
  "authorization.k8s.io/v1/SelfSubjectRulesReview": {
    2: ["spec", { fields: { 1: ["namespace", "text"] } }],
    3: ["status", "ignored"],
  },
};

/** The first bytes of every object, before the `runtime.Unknown` that wraps it. */
const magic = "k8s\0";

/** The object as JSON; undefined if any part is unknown. */
export function readProtobufObject(bytes: Uint8Array): object | undefined {
  try {
    return objectOf(bytes);
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

function objectOf(bytes: Uint8Array): object | undefined {
  if (textOf(bytes.subarray(0, magic.length)) !== magic) return undefined;
  let [apiVersion, kind] = ["", ""];
  let raw: Uint8Array = new Uint8Array();
  for (const { number, value } of fieldsOf(bytes.subarray(magic.length))) {
    if (number === 2) raw = bytesIn(value);
    if (number !== 1) continue;
    for (const part of fieldsOf(bytesIn(value))) {
      if (part.number === 1) apiVersion = textOf(bytesIn(part.value));
      if (part.number === 2) kind = textOf(bytesIn(part.value));
    }
  }
  const fields = kinds[`${apiVersion}/${kind}`];
  if (fields === undefined) return undefined;
  return { apiVersion, kind, ...wireRecordOf(raw, { ...fields, 1: ["metadata", metadata] }) };
}

type WireRecord = Record<string, unknown>;

/** Throws a RangeError at an unknown field that is not empty, and at broken bytes. */
function wireRecordOf(bytes: Uint8Array, fields: WireFields): WireRecord {
  const record: WireRecord = {};
  for (const { number, value } of fieldsOf(bytes)) {
    const field = fields[number];
    if (field !== undefined) put(record, field, value);
    else if (typeof value === "number" ? value !== 0 : value.length > 0) {
      throw new RangeError(`field ${number} is not known`);
    }
  }
  return record;
}

function put(record: WireRecord, [name, shape]: WireFields[number], value: Value): void {
  if (shape === "ignored") return;
  // The writer also writes Go's zero values.
  if (shape === "text" && bytesIn(value).length === 0) return;
  if (typeof shape === "object" && "list" in shape) {
    record[name] = [...((record[name] as unknown[] | undefined) ?? []), read(shape.list, value)];
  } else if (typeof shape === "object" && "textByText" in shape) {
    record[name] = { ...(record[name] as object | undefined), ...entryOf(bytesIn(value)) };
  } else record[name] = read(shape, value);
}

function read(shape: Shape, value: Value): unknown {
  if (shape === "text") return textOf(bytesIn(value));
  if (shape === "number") return numberIn(value);
  if (shape === "boolean") return numberIn(value) !== 0;
  if (typeof shape === "object" && "fields" in shape)
    return wireRecordOf(bytesIn(value), shape.fields);
  throw new RangeError("lists of lists are not known");
}

const entryFields: WireFields = { 1: ["key", "text"], 2: ["value", "text"] };

function entryOf(bytes: Uint8Array): WireRecord {
  const { key = "", value = "" } = wireRecordOf(bytes, entryFields);
  return { [String(key)]: value };
}

/** A number, or the bytes of a text or of a nested message. */
type Value = number | Uint8Array;

interface WireField {
  readonly number: number;
  readonly value: Value;
}

/** The kinds above only use wire types 0 (varint) and 2 (length-delimited). */
function fieldsOf(bytes: Uint8Array): readonly WireField[] {
  const found: WireField[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = varint(bytes, at);
    const first = varint(bytes, tag.next);
    const [number, wireType] = [Math.floor(tag.value / 8), tag.value % 8];
    const end = wireType === 2 ? first.next + first.value : first.next;
    if ((wireType !== 0 && wireType !== 2) || end > bytes.length) throw new RangeError("broken");
    const value = wireType === 2 ? bytes.subarray(first.next, end) : first.value;
    found.push({ number, value });
    at = end;
  }
  return found;
}

/** Negative numbers take ten bytes, and none of the kinds above has one; they are refused. */
function varint(
  bytes: Uint8Array,
  from: number,
): { readonly value: number; readonly next: number } {
  let value = 0;
  for (let place = 0; place < 7; place += 1) {
    const byte = bytes[from + place];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * place);
    if (byte < 0x80) return { value, next: from + place + 1 };
  }
  throw new RangeError("broken");
}

function bytesIn(value: Value): Uint8Array {
  if (typeof value === "number") throw new RangeError("expected bytes");
  return value;
}

function numberIn(value: Value): number {
  if (typeof value !== "number") throw new RangeError("expected a number");
  return value;
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
