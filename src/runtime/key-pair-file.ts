import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import type { KeyPair } from "../contracts/http-route.ts";
import { LastcallError, messageOf } from "../errors.ts";

export interface KeyPairFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * Reads a certificate, followed by those of its authorities, and its key, both in PEM. Throws
 * CONFIG_INVALID, also if one of the files is older than the other and they do not match.
 */
export async function readKeyPair({ certFile, keyFile }: KeyPairFiles): Promise<KeyPair> {
  const [cert, key] = await Promise.all([read(certFile), read(keyFile)]);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw unusable(
      `${certFile} and ${keyFile}`,
      error,
      "expected a certificate in PEM and its key",
    );
  }
  return { cert, key };
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw unusable(file, error, "expected a readable file");
  }
}

function unusable(what: string, error: unknown, wanted: string): LastcallError {
  return new LastcallError(
    "CONFIG_INVALID",
    `Cannot serve metrics by TLS with ${what}: ${messageOf(error)}, ${wanted}`,
  );
}
