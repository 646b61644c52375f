import { describe, expect, it } from "vitest";
import { readProtobufObject } from "../../../src/sim/http/protobuf-object.ts";

/** A field of wire type 2: its tag, length and bytes, for short contents only. */
function field(number: number, content: string | readonly number[]): readonly number[] {
  const bytes = typeof content === "string" ? [...new TextEncoder().encode(content)] : content;
  return [number * 8 + 2, bytes.length, ...bytes];
}

function wrapped(
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  raw: readonly number[],
): Uint8Array {
  const type = [...field(1, apiVersion), ...field(2, kind)];
  const magic = [...new TextEncoder().encode("k8s\0")];
  // Followed by empty strings for the encoding and the content type.
  return Uint8Array.from([
    ...magic,
    ...field(1, type),
    ...field(2, raw),
    ...field(3, ""),
    ...field(4, ""),
  ]);
}

const namespace = { apiVersion: "v1", kind: "Namespace" };

describe("an object in protobuf", () => {
  it("is read as in JSON, without the empty values that Go writes", () => {
    const entry = [...field(1, "team"), ...field(2, "shop")];
    const metadata = [
      ...field(1, "x"),
      ...field(2, ""),
      // A generation of 0, and an empty timestamp.
      ...[7 * 8, 0],
      ...field(8, []),
      ...field(11, entry),
    ];
    const raw = [...field(1, metadata), ...field(2, []), ...field(3, field(1, ""))];
    expect(readProtobufObject(wrapped(namespace, raw))).toEqual({
      ...namespace,
      metadata: { name: "x", labels: { team: "shop" } },
      spec: {},
    });
  });

  it("is read with its lists in order, and with multi-byte numbers", () => {
    const port = [3 * 8, 0x90, 0x3f];
    const container = [...field(1, "c"), ...field(3, "sleep"), ...field(3, "9"), ...field(6, port)];
    const template = field(2, field(2, container));
    const raw = field(2, [...[1 * 8, 0], ...field(3, template)]);
    const type = { apiVersion: "apps/v1", kind: "Deployment" };
    expect(readProtobufObject(wrapped(type, raw))).toEqual({
      ...type,
      spec: {
        replicas: 0,
        template: {
          // 0x90 0x3f: 16 + 63 * 128 = 8080.
          spec: {
            containers: [{ name: "c", command: ["sleep", "9"], ports: [{ containerPort: 8080 }] }],
          },
        },
      },
    });
  });

  it.each([
    ["an unknown kind", wrapped({ apiVersion: "v1", kind: "Node" }, [])],
    ["an unknown field with a value", wrapped(namespace, field(9, "x"))],
    ["a length past its end", wrapped(namespace, [1 * 8 + 2, 99])],
    ["another prefix", Uint8Array.from([1, 2, 3, 4, 5])],
    ["no content", new Uint8Array()],
  ])("is not read if it has %s", (_, bytes) => {
    expect(readProtobufObject(bytes)).toBeUndefined();
  });
});
