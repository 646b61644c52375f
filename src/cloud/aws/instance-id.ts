import { trimmedTextOf } from "../../core/json/json-field.ts";

/** An id as EC2 gives it to an instance; undefined for anything else. */
export function instanceIdOf(value: unknown): string | undefined {
  const id = trimmedTextOf(value) ?? "";
  return /^i-[0-9a-f]{8,32}$/.test(id) ? id : undefined;
}

/** Where an instance is to be asked about. */
export interface InstanceRef {
  readonly instanceId: string;
  /** Absent where the providerID names no zone: the environment says it. */
  readonly region: string | undefined;
}

/** Of `aws:///eu-west-1a/i-0abc`; undefined for anything else. */
export function findInstanceRef(providerID: string): InstanceRef | undefined {
  const [, zone = "", id] = /^aws:\/\/\/([^/]*)\/([^/]+)$/.exec(providerID) ?? [];
  const instanceId = instanceIdOf(id);
  return instanceId === undefined ? undefined : { instanceId, region: regionOf(zone) };
}

/**
 * The region of a zone: `eu-west-1` of `eu-west-1a`, of the local zone `eu-west-1-lax-1a` and of
 * the Wavelength zone `eu-west-1-wl1-bos-wlz-1`. Source: EC2 User Guide, Regions and Zones.
 */
function regionOf(zone: string): string | undefined {
  return /^[a-z]{2,}(-[a-z]+)+-\d+/.exec(zone)?.[0];
}
