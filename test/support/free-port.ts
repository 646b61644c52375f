import { createServer } from "node:net";

// Below the range that Linux (from 32768) and macOS (from 49152) take for outgoing connections: a
// server that is down for a while must find its port free when it comes back.
const lowest = 20_000;
const highest = 32_000;
const attempts = 100;

const given = new Set<number>();

/** A loopback port that nothing listens on, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(
    `Cannot find a free port: ${attempts} between ${lowest} and ${highest} are taken`,
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
