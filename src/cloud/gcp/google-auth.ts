import type { GoogleAuth } from "google-auth-library";
import { LastcallError } from "../../errors.ts";
import { noTokens, type TokenSource } from "../release/rest-exchange.ts";
import type { ComputeEndpoint } from "./compute-client.ts";

type Library = typeof import("google-auth-library");

export interface GoogleTokenOptions {
  readonly endpoint: ComputeEndpoint;
  /** The value of GOOGLE_APPLICATION_CREDENTIALS; only whether there is one is judged here. */
  readonly keyFile: string | undefined;
}

/** The narrowest scope that covers the calls of `computePermissions`. */
const scope = "https://www.googleapis.com/auth/compute";
/**
 * GKE's metadata server hands out its kept token until 3 min 45 s before the end; to ask earlier
 * than that would bring the same token again. Source: GKE documentation on Workload Identity.
 */
const refreshBeforeMs = 225_000;

/**
 * Access tokens by Google's own library: a key file or federation (GOOGLE_APPLICATION_CREDENTIALS),
 * gcloud's login on a laptop, or the metadata server (Workload Identity in a cluster). An endpoint
 * on loopback gets none unless a key file is named, so that tests and local servers need no
 * account.
 */
export function googleTokens(options: GoogleTokenOptions): TokenSource {
  const named = options.keyFile !== undefined && options.keyFile !== "";
  return options.endpoint.loopback && !named ? noTokens : new GoogleTokens();
}

/** Loads the library at the first token only: it costs memory, and other clouds never need it. */
class GoogleTokens implements TokenSource {
  #library: Library | undefined;
  #auth: GoogleAuth | undefined;

  async token(): Promise<string | undefined> {
    try {
      const token = await this.#fetchToken();
      if (token) return token;
    } catch (error) {
      this.forget();
      throw credentialFault(error);
    }
    throw credentialsInvalid("found no token in the answer");
  }

  forget(): void {
    this.#auth = undefined;
    // The library remembers for the life of the process that there was no metadata server, but in
    // a new pod that server may take some seconds to come up.
    this.#library?.gcpMetadata.resetIsAvailableCache();
  }

  async #fetchToken(): Promise<string | null | undefined> {
    this.#library ??= await import("google-auth-library");
    this.#auth ??= new this.#library.GoogleAuth({
      scopes: scope,
      // Any value will do: without one the library runs gcloud and asks around for a project id.
      projectId: "-",
      clientOptions: { eagerRefreshThresholdMillis: refreshBeforeMs },
    });
    return this.#auth.getAccessToken();
  }
}

/**
 * The library's own messages are not repeated: one of a damaged key file quotes from the file, one
 * of a refused exchange from the request. The error says which step failed.
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
    // What the library says of a cluster whose metadata server is away, too: it may come back.
    return credentialsInvalid("found neither a key file nor a metadata server that answers", {
      retryable: true,
    });
  }
  if (/^(E[A-Z]+|UND_ERR_[A-Z_]+|AbortError|TimeoutError)$/.test(code)) {
    const found = `found no connection to the token service (${code})`;
    return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, expected an answer`);
  }
  return credentialsInvalid("found credentials that cannot be used");
}

const cannot = "Cannot get a Google access token";

function tokenServiceFault(status: number): LastcallError {
  const found = `found that the token service answered ${status}`;
  if (status < 500 && status !== 429) return credentialsInvalid(found);
  return new LastcallError("CLOUD_UNREACHABLE", `${cannot}: ${found}, expected a token; retrying`);
}

function credentialsInvalid(found: string, how: { retryable?: boolean } = {}): LastcallError {
  const wanted = "expected Workload Identity or a key file in GOOGLE_APPLICATION_CREDENTIALS";
  return new LastcallError("CLOUD_CREDENTIALS", `${cannot}: ${found}, ${wanted}`, how);
}

interface ForeignError {
  readonly message: string;
  readonly status: number | undefined;
  readonly code: string;
}

function readForeignError(error: unknown): ForeignError {
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
