import { type MetadataReply, MetadataServer } from "./metadata-server.ts";
import type { SeenRequest } from "./scripted-server.ts";

interface Held {
  readonly path: string;
  readonly let: () => void;
}

/** Compute Engine's metadata server, with requests that hang until a value changes. */
export class GcpMetadataServer extends MetadataServer {
  readonly #values = new Map<string, string>([
    ["instance/id", "4520031799277581759"],
    ["instance/preempted", "FALSE"],
    ["instance/maintenance-event", "NONE"],
  ]);
  readonly #versions = new Map<string, number>();
  #held: Held[] = [];

  set(path: string, value: string): void {
    this.#values.set(path, value);
    this.#versions.set(path, (this.#versions.get(path) ?? 0) + 1);
    for (const held of this.#held.filter((one) => one.path === path)) held.let();
  }

  get held(): number {
    return this.#held.length;
  }

  protected override wake(): void {
    for (const held of this.#held) held.let();
  }

  protected override async answer(request: SeenRequest, gone: AbortSignal): Promise<MetadataReply> {
    const flavor = { "metadata-flavor": "Google" };
    if (request.headers["metadata-flavor"] !== "Google") {
      return { status: 403, body: "Missing header", headers: flavor };
    }
    const url = new URL(request.url, "http://metadata");
    const path = url.pathname.replace("/computeMetadata/v1/", "");
    if (url.searchParams.get("wait_for_change") === "true") await this.#hold(path, url, gone);
    const value = this.#values.get(path);
    if (value === undefined) return { status: 404, body: "", headers: flavor };
    return { status: 200, body: value, headers: { ...flavor, etag: this.#etag(path) } };
  }

  #etag(path: string): string {
    return `etag-${path.length}-${this.#versions.get(path) ?? 0}`;
  }

  /**
   * Waits while the value is still the one that the caller knows, at most as long as it requested.
   */
  async #hold(path: string, url: URL, gone: AbortSignal): Promise<void> {
    if (url.searchParams.get("last_etag") !== this.#etag(path)) return;
    const limitMs = Number(url.searchParams.get("timeout_sec") ?? "60") * 1000;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => held.let(), limitMs);
      const held: Held = {
        path,
        let: () => {
          clearTimeout(timer);
          this.#held = this.#held.filter((one) => one !== held);
          resolve();
        },
      };
      this.#held.push(held);
      gone.addEventListener("abort", held.let, { once: true });
    });
  }
}
