import type { Clock } from "../../contracts/clock.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { formatInstant, type Instant, instant } from "../../core/time/time.ts";
import type { ResourceRegistry } from "./resource-registry.ts";
import type { ModelStore } from "./store/object-store.ts";

/** What every part of the model API needs. */
export interface ApiContext {
  readonly store: ModelStore;
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  readonly rng: Rng;
}

let lastSecond = Number.NaN;
let lastText = "";

/** An instant as Kubernetes writes it: whole seconds, `2026-11-20T00:00:00Z`. */
export function timestamp(at: Instant): string {
  const second = Math.floor(at / 1000);
  // Most writes of a run happen in the same second as the write before.
  if (second !== lastSecond) {
    lastSecond = second;
    lastText = `${formatInstant(instant(second * 1000)).slice(0, 19)}Z`;
  }
  return lastText;
}

/** A random UUID of version 4. */
export function randomUid(context: Pick<ApiContext, "rng">): string {
  const words = [0, 1, 2, 3].map(() => Math.floor(context.rng() * 4_294_967_296));
  const hex = words.map((word) => word.toString(16).padStart(8, "0")).join("");
  const variant = "89ab"[Number.parseInt(hex[16] ?? "0", 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** The letters of generated names: no vowels, so that no words come out, and neither 0, 1 nor 3. */
const nameLetters = "bcdfghjklmnpqrstvwxz2456789";

/** `web-` becomes `web-x7k2p`. Source: apiserver `pkg/storage/names/generate.go`. */
export function generatedName(context: Pick<ApiContext, "rng">, base: string): string {
  let name = base.slice(0, 58);
  for (let letter = 0; letter < 5; letter += 1) {
    name += nameLetters[Math.floor(context.rng() * nameLetters.length)];
  }
  return name;
}

/** A parsed path below `/api` or `/apis`; `name` is absent for a collection. */
export interface ResourcePath {
  /** `v1` or `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** Parses a request path; undefined if it names no resource. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const parts = path.split("/");
  if (parts[1] === "api" && parts.length > 3) return withResource(parts[2] ?? "", parts.slice(3));
  if (parts[1] !== "apis" || parts.length <= 4) return undefined;
  return withResource(`${parts[2]}/${parts[3]}`, parts.slice(4));
}

/** `namespaces/x/pods` is namespaced; `namespaces/x` and `namespaces/x/status` are not. */
function withResource(apiVersion: string, rest: string[]): ResourcePath | undefined {
  if (rest[0] === "namespaces" && rest.length > 2 && !isNamespaceSubresource(rest[2])) {
    return withName({ apiVersion, namespace: decode(rest[1]), rest: rest.slice(2) });
  }
  return withName({ apiVersion, namespace: undefined, rest });
}

function isNamespaceSubresource(segment: string | undefined): boolean {
  return segment === "status" || segment === "finalize";
}

function withName(parts: {
  apiVersion: string;
  namespace: string | undefined;
  rest: string[];
}): ResourcePath | undefined {
  const [plural, name, subresource, ...beyond] = parts.rest;
  if (plural === undefined || plural === "" || beyond.length > 0) return undefined;
  return {
    apiVersion: parts.apiVersion,
    namespace: parts.namespace,
    plural,
    name: name === undefined || name === "" ? undefined : decode(name),
    subresource,
  };
}

function decode(segment: string | undefined): string {
  return segment?.includes("%") ? decodeURIComponent(segment) : (segment ?? "");
}
