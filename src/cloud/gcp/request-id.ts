import { LastcallError } from "../../errors.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const zero = "00000000-0000-0000-0000-000000000000";

/**
 * Compute Engine refuses the zero UUID as `requestId`; anything but a UUID too. Throws
 * CLOUD_REFUSED.
 */
export function checkRequestId(requestId: string): void {
  if (uuid.test(requestId) && requestId !== zero) return;
  const found = `found the request id ${JSON.stringify(requestId)}`;
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release a machine: ${found}, expected a UUID other than zero`,
  );
}

/**
 * The `requestId` to send after `failures` operations under this one ended in an error. The cloud
 * answers a known id with the operation that it began then, a failed one too, so the same id would
 * bring the same failure back. Always the same id for the same count.
 */
export function requestIdAfter(requestId: string, failures: number): string {
  if (failures === 0) return requestId;
  const tail = (BigInt(`0x${requestId.slice(24)}`) + BigInt(failures)) & 0xffff_ffff_ffffn;
  return requestId.slice(0, 24) + tail.toString(16).padStart(12, "0");
}
