import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** In front of a server: while it is frozen it accepts connections and bytes, and answers none. */
export async function frozenProxy(to: URL) {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const proxy = createServer((near) => {
    const far = connect(Number(to.port), to.hostname);
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      if (isFrozen) from.pause();
      from.on("data", (bytes) => into.write(bytes));
      if (isFrozen) from.pause();
      from.on("close", () => into.destroy());
      from.on("error", () => into.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}
