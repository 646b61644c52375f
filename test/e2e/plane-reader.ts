import type { Node } from "kubernetes-types/core/v1.js";
import type { ControlPlane } from "../support/control-plane.ts";
import type { RawDeparture } from "./history.ts";

/** Reads what the API server of a plane has, as an observer. */
export class PlaneReader {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async departures(): Promise<readonly RawDeparture[]> {
    const path = "/apis/lastcall.dev/v1alpha1/departures";
    return (await this.#plane.request({ path })).body.items;
  }

  /** The newest departure of a node. */
  async departureOf(node: string): Promise<RawDeparture> {
    return (await this.departures()).findLast(({ spec }) => spec?.node?.name === node) ?? {};
  }

  /** The first of the nodes whose departure is so. */
  async whoIs(
    nodes: readonly string[],
    wanted: { readonly phase: string; readonly reason?: string },
  ): Promise<string | undefined> {
    for (const name of nodes) {
      const { status } = await this.departureOf(name);
      const isMeant = wanted.reason === undefined || status?.reason === wanted.reason;
      if (status?.phase === wanted.phase && isMeant) return name;
    }
    return undefined;
  }

  async nodeOf(name: string): Promise<Node> {
    return (await this.#plane.request({ path: `/api/v1/nodes/${name}` })).body;
  }

  async isThere(name: string): Promise<boolean> {
    return (await this.#plane.request({ path: `/api/v1/nodes/${name}` })).status === 200;
  }
}
