import { fieldsOf, textOf } from "../../src/core/json/json-field.ts";
import { minutes } from "../../src/core/time/time.ts";
import { jsonFields } from "./message-receivers.ts";
import { type Receiver, secret, secretRef } from "./sink-world.ts";

/**
 * The receivers that keep the state of a host, with what each refuses: test/support/README.md names
 * the sources.
 */

export function datadog(host = { name: "n1", aliases: ["i-0abc"], is_muted: false }) {
  const receiver: Receiver<"datadogMute"> = {
    sort: "Undoable",
    how: (url) => ({
      kind: "datadogMute",
      ...{ url, host: "i-0abc", durationMs: minutes(60) },
      ...{ apiKey: secretRef, applicationKey: secretRef },
    }),
    state: () => host,
    reply: (request) => {
      const { method, path, headers, query } = request;
      if (headers["dd-api-key"] !== secret || headers["dd-application-key"] !== secret) {
        return { status: 403, body: { errors: ["Forbidden"] } };
      }
      if (method === "GET" && path === "/api/v1/hosts") {
        const invalid = { status: 400, body: { errors: ["Invalid Parameter"] } };
        if (Number(query.get("count") ?? 100) > 1000) return invalid;
        return { status: 200, body: { host_list: [{ name: "n10", aliases: [] }, host] } };
      }
      if (path === "/api/v1/host/n1/mute") {
        const fields = jsonFields(request);
        if (fields === undefined || !Number.isInteger(fields.end ?? 0)) {
          return { status: 400, body: { errors: ["Invalid Parameter"] } };
        }
        if (host.is_muted && fields.override !== true) {
          return { status: 400, body: { errors: ["Host is already muted"] } };
        }
        host.is_muted = true;
        return { status: 200, body: { action: "Muted" } };
      }
      if (path !== "/api/v1/host/n1/unmute") return { status: 404, body: {} };
      if (!host.is_muted) return { status: 400, body: { errors: ["Host is not muted"] } };
      host.is_muted = false;
      return { status: 200, body: { action: "Unmuted" } };
    },
  };
  return { receiver, host };
}

const mackerelStatuses = ["standby", "working", "maintenance", "poweroff"];

export function mackerel(host = { id: "3yAYEDLXKL5", name: "n1", status: "working" }) {
  const receiver: Receiver<"mackerelStatus"> = {
    sort: "Undoable",
    how: (url) => ({ kind: "mackerelStatus", url, host: "n1", status: "maintenance", secretRef }),
    state: () => host,
    reply: (request) => {
      const { method, path, headers, query } = request;
      if (headers["x-api-key"] !== secret) return { status: 403, body: {} };
      if (method === "GET" && path === "/api/v0/hosts") {
        const statuses = query.getAll("status");
        const isListed = (statuses.length === 0 ? ["working", "standby"] : statuses).includes(
          host.status,
        );
        const isMeant =
          query.get("name") === host.name || query.get("customIdentifier") === "i-0abc";
        return { status: 200, body: { hosts: isMeant && isListed ? [host] : [] } };
      }
      if (path !== `/api/v0/hosts/${host.id}/status` || method !== "POST") {
        return { status: 404, body: {} };
      }
      const status = textOf(jsonFields(request)?.status);
      if (status === undefined || !mackerelStatuses.includes(status)) {
        return { status: 400, body: {} };
      }
      host.status = status;
      return { status: 200, body: { success: true } };
    },
  };
  return { receiver, host };
}

export interface Silence {
  readonly id: string;
  readonly comment: string;
  readonly matchers: unknown;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly createdBy: string;
  status: { state: string };
}

interface Matcher {
  readonly name: string;
  readonly operator: string;
  readonly value: string;
}

function operatorOf({ isRegex = false, isEqual = true }: Record<string, unknown>): string {
  if (isRegex === true) return isEqual === true ? "=~" : "!~";
  return isEqual === true ? "=" : "!=";
}

/** The id of a silence by the order of its creation; the first one is a person's. */
export const silenceId = (place: number): string => `00000000-0000-4000-8000-00000000000${place}`;

/** A silence is found by its own matcher: the same label, kind and text. No pattern is applied. */
function isFound({ matchers }: Silence, filter: Matcher): boolean {
  return (matchers as readonly Record<string, unknown>[]).some(
    (one) =>
      one.name === filter.name && one.value === filter.value && operatorOf(one) === filter.operator,
  );
}

function readFilter(filter: string): Matcher | undefined {
  const { name, operator, value } =
    /^(?<name>\w+)(?<operator>=~|!~|!=|=)"(?<value>.*)"$/s.exec(filter)?.groups ?? {};
  if (name === undefined || operator === undefined || value === undefined) return undefined;
  const unescaped = value.replace(/\\(["\\n])/g, (_, one) => (one === "n" ? "\n" : one));
  return { name, operator, value: unescaped };
}

/** What a silence lacks, in Alertmanager's words, with the status of the refusal. */
function silenceProblem(
  fields: Record<string, unknown>,
  now: string,
): [number, string] | undefined {
  const missing = ["matchers", "startsAt", "endsAt", "createdBy", "comment"].find(
    (name) => fields[name] === undefined,
  );
  if (missing !== undefined) return [422, `${missing} in body is required`];
  const matchers = (fields.matchers as readonly unknown[]).map(fieldsOf);
  if (matchers.length === 0) return [422, "matchers in body should have at least 1 items"];
  const [startsAt, endsAt] = [String(fields.startsAt), String(fields.endsAt)];
  if (startsAt >= endsAt) return [400, "start time must be before end time"];
  if (endsAt < now) return [400, "end time can't be in the past"];
  // As far as a pattern of JavaScript matches like one of RE2.
  const matchesEmpty = (one: Record<string, unknown>): boolean => {
    const value = String(one.value);
    if (operatorOf(one) === "=") return value === "";
    return operatorOf(one) === "=~" && new RegExp(`^(?:${value})$`).test("");
  };
  const isUseless = matchers.every(matchesEmpty);
  return isUseless ? [400, "at least one matcher must not match the empty string"] : undefined;
}

const apiPath = "/prefix/api/v2";
const personsSilence: Silence = {
  ...{ id: silenceId(0), comment: "mine", matchers: [], createdBy: "me" },
  ...{ startsAt: "", endsAt: "", status: { state: "active" } },
};

/** The part of Alertmanager's API v2 for silences that Lastcall uses, at 12:00 of `sinkNow`. */
export function alertmanager(): Receiver<"alertmanagerSilence"> & {
  readonly silences: Silence[];
} {
  const silences: Silence[] = [structuredClone(personsSilence)];
  return {
    silences,
    sort: "Undoable",
    how: (url) => ({
      kind: "alertmanagerSilence",
      ...{ url: `${url}/prefix/`, durationMs: minutes(120), comment: "n1 leaves", secretRef },
      matchers: ['instance=~"n1:[0-9]+"', 'job!="a\\"b"', "team=web"],
    }),
    state: () => silences.filter(({ status }) => status.state !== "expired"),
    reply: (request) => {
      const { method, path, query } = request;
      if (path === `${apiPath}/silences` && method === "GET") {
        const filters = query.getAll("filter").map(readFilter);
        if (filters.includes(undefined)) return { status: 400, body: '"bad matcher format"' };
        const isMeant = (one: Silence) => filters.every((filter) => filter && isFound(one, filter));
        return { status: 200, body: silences.filter(isMeant) };
      }
      if (path === `${apiPath}/silences` && method === "POST") {
        const fields = jsonFields(request);
        if (fields === undefined) return { status: 415, body: { code: 415 } };
        const [status, problem] = silenceProblem(fields, "2026-11-24T12:00:00.000Z") ?? [];
        if (status !== undefined) return { status, body: JSON.stringify(problem) };
        const id = silenceId(silences.length);
        silences.push({ ...(fields as unknown as Silence), id, status: { state: "active" } });
        return { status: 200, body: { silenceID: id } };
      }
      const id = path.startsWith(`${apiPath}/silence/`) ? path.split("/").at(-1) : undefined;
      if (id === undefined || method !== "DELETE") return { status: 404, body: "no" };
      if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
        return {
          status: 422,
          body: { code: 601, message: "silenceID in path must be of type uuid" },
        };
      }
      const found = silences.find((one) => one.id === id);
      if (found === undefined) return { status: 404, body: "" };
      found.status = { state: "expired" };
      return { status: 200 };
    },
  };
}
