import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export interface Tunnel {
  readonly port: number;
  /**
   * From now on nothing passes on any open connection, in either direction, and none of them is
   * closed: the kernel still accepts what is sent. Connections made later work.
   */
  blackHole(): void;
  /** The next connection is accepted, but nothing ever passes on it. */
  hangNext(): void;
  /** Resets every open connection. */
  reset(): void;
  close(): Promise<void>;
}

/** Forwards bytes between two loopback ports, TLS or not, so that a test can stop them. */
export async function startTunnel(targetPort: number): Promise<Tunnel> {
  const open = new Set<Socket>();
  let hangs = false;
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    join(near, far, open);
    if (hangs) for (const socket of [near, far]) mute(socket);
    hangs = false;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    blackHole: () => {
      for (const socket of open) mute(socket);
    },
    hangNext: () => {
      hangs = true;
    },
    reset: () => {
      for (const socket of open) socket.resetAndDestroy();
    },
    close: () => close(server, open),
  };
}

function join(near: Socket, far: Socket, open: Set<Socket>): void {
  const ends = [
    [near, far],
    [far, near],
  ] as const;
  for (const [one, other] of ends) {
    open.add(one);
    one.setNoDelay(true);
    one.pipe(other);
    one.on("error", () => other.destroy());
    one.on("close", () => {
      open.delete(one);
      other.destroy();
    });
  }
}

function mute(socket: Socket): void {
  socket.unpipe();
  socket.pause();
}

function close(server: Server, open: ReadonlySet<Socket>): Promise<void> {
  for (const socket of open) socket.destroy();
  return new Promise((resolve) => server.close(() => resolve()));
}
