import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";

/** Whether a server's health address responds with 200. The certificate is not checked. */
export function isHealthy(url: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const request = url.startsWith("https:") ? requestTls : requestPlain;
  const outgoing = request(url, { rejectUnauthorized: false, timeout: 5_000 }, (incoming) => {
    incoming.resume();
    resolve(incoming.statusCode === 200);
  });
  outgoing.on("timeout", () => outgoing.destroy());
  outgoing.on("error", () => resolve(false));
  outgoing.end();
  return promise;
}
