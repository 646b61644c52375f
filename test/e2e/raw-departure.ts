import type { ControlPlane } from "../support/control-plane.ts";

interface RawSpec {
  readonly cause: string;
  readonly policy?: string;
  readonly source?: string;
  readonly departAt?: string;
  readonly noticedAt?: string;
  readonly deadlineAt?: string;
}

/**
 * Creates a Departure as any source does, by one plain request; returns the time before it.
 */
export async function makeDeparture(
  plane: ControlPlane,
  node: string,
  about: { readonly name?: string; readonly spec: (nowMs: number) => RawSpec },
): Promise<{ readonly name: string; readonly atMs: number }> {
  const { body: object } = await plane.request({ path: `/api/v1/nodes/${node}` });
  const { uid } = object.metadata;
  const { name = `${node}-${uid.slice(0, 8)}`, spec } = about;
  const atMs = Date.now();
  const identity = {
    ...{ name: node, uid, providerID: object.spec.providerID },
    bootID: object.status.nodeInfo.bootID,
  };
  const { status, body } = await plane.request({
    method: "POST",
    path: "/apis/lastcall.dev/v1alpha1/departures",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name },
      spec: { node: identity, ...spec(atMs) },
    },
  });
  if (status !== 201) throw new Error(`Cannot make a Departure of ${node}: ${body.message}`);
  return { name, atMs };
}

/** What an agent writes when the cloud interrupts its machine. */
export function noticeOf(seconds: number): (nowMs: number) => RawSpec {
  return (nowMs) => ({
    cause: "SpotInterruption",
    noticedAt: new Date(nowMs).toISOString(),
    deadlineAt: new Date(nowMs + seconds * 1000).toISOString(),
    source: "agent/aws/spot-instance-action",
  });
}
