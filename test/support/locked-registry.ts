import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface LockedRegistry {
  /** `127.0.0.1:PORT`. */
  readonly address: string;
  /** The entry that `docker login` writes into config.json for it. */
  readonly login: string;
  /** How many calls without a login it has refused. */
  refused(): number;
  close(): Promise<void>;
}

/** A proxy that requires a name and a password, as public registries do, in front of a registry. */
export async function lockRegistry(target: string): Promise<LockedRegistry> {
  const auth = Buffer.from("ann:secret").toString("base64");
  let refused = 0;
  const server = createServer((incoming, outgoing) => {
    if (incoming.headers.authorization !== `Basic ${auth}`) {
      refused += 1;
      incoming.resume();
      outgoing.writeHead(401, { "www-authenticate": 'Basic realm="registry"' }).end();
      return;
    }
    const { method, url: path, headers } = incoming;
    const [host, port] = target.split(":");
    const onward = request({ host, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    address,
    login: JSON.stringify({ auths: { [address]: { auth } } }),
    refused: () => refused,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
