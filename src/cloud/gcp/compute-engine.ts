import type { GoogleAuth } from "google-auth-library";
import type { Clock } from "../../contracts/clock.ts";
import type {
  InstanceReleaser,
  LaunchTimeReading,
  LaunchTimes,
  NoticeFeed,
} from "../../contracts/cloud.ts";
import type { Rng } from "../../core/chance/chance.ts";
import type { Instant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { type MachinePlace, placesOf, readPlaces } from "../release/release-loop.ts";
import { noTokens, type TokenSource } from "../release/rest-exchange.ts";
import {
  ComputeClient,
  type ComputeEndpoint,
  defaultComputeEndpoint,
  listItems,
  parseComputeEndpoint,
} from "./compute-client.ts";
import { type ComputeInstanceRef, findInstanceRef, launchTimeOf } from "./compute-instance.ts";
import { ComputeReleaser } from "./compute-releaser.ts";
import { PreemptionFeed, type PreemptionFeedOptions } from "./preemption-feed.ts";

export interface ComputeSettings {
  /** The value of `--gcp-endpoint`. */
  readonly endpoint?: string | undefined;
  /** The value of GOOGLE_APPLICATION_CREDENTIALS. */
  readonly keyFile?: string | undefined;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** The controller's access to Compute Engine, with one client and one set of credentials. */
export interface ComputeEngine {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /** The machines that run now in the same managed groups, or in the same cluster. */
  groupsOf(providerIDs: readonly string[], signal: AbortSignal): Promise<readonly string[]>;
  preemptions(how: Pick<PreemptionFeedOptions, "pollMs" | "machines">): NoticeFeed;
}

/** Creates the parts without sending anything. Throws CONFIG_INVALID for an invalid endpoint. */
export function createComputeEngine(settings: ComputeSettings): ComputeEngine {
  const { fetch, clock, rng, keyFile } = settings;
  const endpoint = parseComputeEndpoint(settings.endpoint ?? defaultComputeEndpoint);
  const tokens = googleTokens({ endpoint, keyFile });
  const client = new ComputeClient({ endpoint, tokens, fetch, clock, rng });
  const releaser = new ComputeReleaser({ client, clock, rng });
  const launchTimes = new ComputeLaunchTimes(client);
  return {
    releaser,
    groupsOf: (providerIDs, signal) => releaser.groupsOf(providerIDs, signal),
    launchTimes,
    preemptions: (how) => new PreemptionFeed({ client, clock, rng, launchTimes, ...how }),
  };
}

/** Up to this many machines of a zone are read by name; beyond that, the zone is listed. */
const mostNames = 40;

/**
 * Launch times by `instances.list`: one request per zone for up to 500 machines, with three fields
 * each.
 */
export class ComputeLaunchTimes implements LaunchTimes {
  readonly #client: ComputeClient;

  constructor(client: ComputeClient) {
    this.#client = client;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    const places = placesOf(providerIDs, (providerID) => {
      const ref = findInstanceRef(providerID);
      return ref && { ref, key: `${ref.project}/${ref.zone}`, id: ref.name };
    });
    return readPlaces(places, (place, bornAt) => this.#readZone(place, { bornAt, signal }), signal);
  }

  async #readZone(
    { ref, wanted }: MachinePlace<ComputeInstanceRef>,
    into: { readonly bornAt: Map<string, Instant>; readonly signal: AbortSignal },
  ): Promise<void> {
    const { project, zone } = ref;
    const names = [...wanted.keys()];
    const filter = names.map((name) => `(name = "${name}")`).join(" OR ");
    const list = {
      path: `/projects/${project}/zones/${zone}/instances`,
      query: {
        fields: "items(name,creationTimestamp,lastStartTimestamp),nextPageToken,warning",
        ...(names.length > mostNames ? {} : { filter }),
      },
      action: `list the instances of ${project}/${zone}`,
      permission: "compute.instances.list",
    };
    const send = this.#client.sendPatiently.bind(this.#client);
    for await (const item of listItems(send, list, into.signal)) {
      const providerID = wanted.get(String(item.name));
      const bornAt = launchTimeOf(item);
      if (providerID !== undefined && bornAt !== undefined) into.bornAt.set(providerID, bornAt);
    }
  }
}

type GoogleLibrary = typeof import("google-auth-library");

export interface GoogleTokenOptions {
  readonly endpoint: ComputeEndpoint;
  /** The value of GOOGLE_APPLICATION_CREDENTIALS; only whether it is set matters here. */
  readonly keyFile: string | undefined;
}

/** The narrowest scope that covers the calls of `computePermissions`. */
const scope = "https://www.googleapis.com/auth/compute";
/**
 * GKE's metadata server serves its cached token until 3 min 45 s before it expires; an earlier
 * request would return the same token. Source: GKE documentation on Workload Identity.
 */
const refreshBeforeMs = 225_000;

/**
 * Access tokens by Google's own library: a key file or federation (GOOGLE_APPLICATION_CREDENTIALS),
 * gcloud's login on a laptop, or the metadata server (Workload Identity in a cluster). An endpoint
 * on loopback gets none unless a key file is set, so that tests and local servers need no account.
 */
export function googleTokens(options: GoogleTokenOptions): TokenSource {
  const named = options.keyFile !== undefined && options.keyFile !== "";
  return options.endpoint.loopback && !named ? noTokens : new GoogleTokens();
}

/** Loads the library only at the first token: it uses memory, and other clouds never need it. */
class GoogleTokens implements TokenSource {
  #library: GoogleLibrary | undefined;
  #auth: GoogleAuth | undefined;

  async token(): Promise<string | undefined> {
    try {
      const token = await this.#fetchToken();
      if (token) return token;
    } catch (error) {
      this.forget();
      throw credentialFault(error);
    }
    throw credentialsInvalid("found no token in the response");
  }

  forget(): void {
    this.#auth = undefined;
    // The library remembers for the life of the process that there was no metadata server, but in a
    // new pod that server may take some seconds to start.
    this.#library?.gcpMetadata.resetIsAvailableCache();
  }

  async #fetchToken(): Promise<string | null | undefined> {
    this.#library ??= await import("google-auth-library");
    this.#auth ??= new this.#library.GoogleAuth({
      scopes: scope,
      // Any value will do: without one the library runs gcloud and searches for a project id.
      projectId: "-",
      clientOptions: { eagerRefreshThresholdMillis: refreshBeforeMs },
    });
    return this.#auth.getAccessToken();
  }
}

/**
 * The library's own messages are not repeated: for a damaged key file they quote from the file, for
 * a refused exchange from the request. The error says which step failed.
 */
function credentialFault(error: unknown): LastcallError {
  const { message, status, code } = readForeignError(error);
  if (status !== undefined) return tokenServiceFault(status);
  if (message.startsWith("Unable to read the credential file")) {
    return credentialsInvalid(
      "found that the file of GOOGLE_APPLICATION_CREDENTIALS is unreadable",
    );
  }
  if (message.startsWith("Could not load the default credentials")) {
    // The library reports the same if the cluster's metadata server is down, which may be
    // temporary.
    return credentialsInvalid("found neither a key file nor a metadata server that responds", {
      retryable: true,
    });
  }
  if (/^(E[A-Z]+|UND_ERR_[A-Z_]+|AbortError|TimeoutError)$/.test(code)) {
    const found = `found no connection to the token service (${code})`;
    return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, expected a response`);
  }
  return credentialsInvalid("found credentials that cannot be used");
}

const cannot = "Cannot get a Google access token";

function tokenServiceFault(status: number): LastcallError {
  const found = `found that the token service responded with ${status}`;
  if (status < 500 && status !== 429) return credentialsInvalid(found);
  return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, expected a token; retrying`);
}

function credentialsInvalid(found: string, how: { retryable?: boolean } = {}): LastcallError {
  const wanted = "expected Workload Identity or a key file in GOOGLE_APPLICATION_CREDENTIALS";
  return new LastcallError("CLOUD_CREDENTIALS", `${cannot}: ${found}, ${wanted}`, how);
}

interface GoogleError {
  readonly message: string;
  readonly status: number | undefined;
  readonly code: string;
}

function readForeignError(error: unknown): GoogleError {
  const shape = (error ?? {}) as {
    readonly message?: unknown;
    readonly code?: unknown;
    readonly name?: unknown;
    readonly response?: { readonly status?: unknown };
    readonly cause?: { readonly code?: unknown };
  };
  const status = shape.response?.status;
  const code = [shape.cause?.code, shape.code, shape.name].find((one) => typeof one === "string");
  return {
    message: typeof shape.message === "string" ? shape.message : "",
    status: typeof status === "number" ? status : undefined,
    code: typeof code === "string" ? code : "",
  };
}
