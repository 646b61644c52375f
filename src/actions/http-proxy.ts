import { bareHost } from "./action-hosts.ts";

export type ProxyEnv = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for an address, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say it, in capitals or small
 * letters; undefined where it is reached directly.
 */
export function proxyFor(url: URL, env: ProxyEnv): string | undefined {
  const name = url.protocol === "https:" ? "https_proxy" : "http_proxy";
  const proxy = env[name] || env[name.toUpperCase()];
  if (proxy === undefined || proxy === "") return undefined;
  const exceptions = (env.no_proxy || env.NO_PROXY || "").split(/[\s,]+/).filter(Boolean);
  return exceptions.some((one) => isExcepted(url, one.toLowerCase())) ? undefined : proxy;
}

function isExcepted(url: URL, exception: string): boolean {
  if (exception === "*") return true;
  const { domain = "", port } = /^(?<domain>.*?)(:(?<port>\d+))?$/.exec(exception)?.groups ?? {};
  const ownPort = url.port || (url.protocol === "https:" ? "443" : "80");
  if (port !== undefined && port !== ownPort) return false;
  const host = bareHost(url.hostname);
  const suffix = domain.replace(/^\*?\./, "");
  return host === suffix || host.endsWith(`.${suffix}`);
}
