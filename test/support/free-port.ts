import { createServer } from "node:net";

// Below the range that Linux (from 32768) and macOS (from 49152) use for outgoing connections: a
// server that is down for a while must find its port free when it restarts.
const lowest = 20_000;
const highest = 32_000;
const attempts = 100;

// Each test file that runs in parallel has its own share: a port that one file was given, and on
// which nothing listens yet, must not be given to another.
const shares = 8;
const share = Number(process.env.VITEST_POOL_ID ?? 0) % shares;
const width = Math.floor((highest - lowest) / shares);

const given = new Set<number>();

/** A loopback port that nothing listens on and that no test has been given before. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = lowest + share * width + Math.floor(Math.random() * width);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(
    `Cannot find a free port: ${attempts} of ${width} from ${lowest + share * width} on are taken`,
  );
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const server = createServer();
  server.once("error", () => resolve(false));
  server.listen({ host: "127.0.0.1", port, exclusive: true }, () => {
    server.close(() => resolve(true));
  });
  return promise;
}
