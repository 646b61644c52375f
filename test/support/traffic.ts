import http, {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";

/** A machine's port on which kube-proxy forwards requests to pods. */
export interface NodePort {
  readonly url: string;
  /** Takes the machine away, with every connection. */
  kill(): Promise<void>;
}

/** How long a pod takes to process a request. */
const workMs = { least: 20, most: 80 };

/**
 * `hasPods`: whether there is a pod to respond; if not, the connection breaks, as with kube-proxy.
 */
export async function startNodePort(hasPods: () => boolean): Promise<NodePort> {
  let turn = 0;
  const server = createServer((request, response) => {
    if (!hasPods()) return void request.socket.destroy();
    turn += 1;
    const spanMs = workMs.least + ((turn * 7) % (workMs.most - workMs.least));
    setTimeout(() => response.end("ok"), spanMs);
  });
  const url = await listening(server);
  return { url, kill: () => closed(server) };
}

export interface LoadBalancing {
  /** The addresses of the currently registered targets. */
  readonly targets: () => readonly string[];
  readonly healthCheckMs: number;
  /** After this many failed checks a target is skipped, until a check succeeds. */
  readonly unhealthyAfter: number;
}

/**
 * An HTTP load balancer on loopback that behaves like an Application Load Balancer: each request
 * goes to the next healthy target, nothing is retried, and the response is 502 if the target does
 * not respond. Requests in flight to a target that is deregistered end normally.
 */
export class HttpLoadBalancer {
  readonly url: string;
  readonly #server: Server;
  readonly #checks: NodeJS.Timeout;

  private constructor(server: Server, url: string, checks: NodeJS.Timeout) {
    this.#server = server;
    this.url = url;
    this.#checks = checks;
  }

  static async start(how: LoadBalancing): Promise<HttpLoadBalancer> {
    const failures = new Map<string, number>();
    const agent = new http.Agent({ keepAlive: true });
    let turn = 0;
    const server = createServer((request, response) => {
      const healthy = how
        .targets()
        .filter((target) => (failures.get(target) ?? 0) < how.unhealthyAfter);
      turn += 1;
      const target = healthy[turn % healthy.length];
      if (target === undefined) return void response.writeHead(503).end();
      forward({ request, response, target, agent });
    });
    const check = async (target: string): Promise<void> => {
      const signal = AbortSignal.timeout(Math.min(5000, how.healthCheckMs));
      const isWell = await fetch(target, { signal }).then(
        ({ ok }) => ok,
        () => false,
      );
      failures.set(target, isWell ? 0 : (failures.get(target) ?? 0) + 1);
    };
    const checks = setInterval(() => {
      for (const target of how.targets()) void check(target);
    }, how.healthCheckMs);
    return new HttpLoadBalancer(server, await listening(server), checks);
  }

  close(): Promise<void> {
    clearInterval(this.#checks);
    return closed(this.#server);
  }
}

function forward(about: {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly target: string;
  readonly agent: http.Agent;
}): void {
  const { request, response, target, agent } = about;
  const asked = http.request(new URL(request.url ?? "/", target), { agent }, (answer) => {
    response.writeHead(answer.statusCode ?? 502);
    answer.on("error", () => response.destroy());
    answer.pipe(response);
  });
  asked.on("error", () =>
    response.headersSent ? response.destroy() : response.writeHead(502).end(),
  );
  asked.end();
}

/**
 * Sends this many requests a second, whether or not earlier ones have been answered. A request
 * fails if its response has another status than 200, or does not arrive within ten seconds.
 */
export async function load(
  url: string,
  { perSecond, spanMs }: { readonly perSecond: number; readonly spanMs: number },
): Promise<{ readonly sent: number; readonly failed: number }> {
  const agent = new http.Agent({ keepAlive: true });
  const startMs = performance.now();
  const results: Promise<boolean>[] = [];
  const whole = Math.floor((spanMs / 1000) * perSecond);
  while (results.length < whole) {
    const dueMs = startMs + (results.length * 1000) / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())));
    results.push(isAnswered(url, agent));
  }
  const failed = (await Promise.all(results)).filter((isWell) => !isWell).length;
  agent.destroy();
  return { sent: whole, failed };
}

function isAnswered(url: string, agent: http.Agent): Promise<boolean> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(10_000);
    const asked = http.get(url, { agent, signal }, (answer) => {
      answer.on("error", () => resolve(false));
      answer.resume().on("end", () => resolve(answer.statusCode === 200));
    });
    asked.on("error", () => resolve(false));
  });
}

async function listening(server: Server): Promise<string> {
  // Only the client closes idle connections, so none breaks at the moment it is used.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.closeAllConnections();
    server.close(() => resolve());
  });
}
