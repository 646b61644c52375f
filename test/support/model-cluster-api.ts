import { parse } from "yaml";
import { generateCrds } from "../../src/config/schema/crd.ts";
import type { Clock } from "../../src/contracts/clock.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { ModelApi } from "../../src/sim/api/model-api.ts";

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** As they are installed. Read once: that takes fifty times as long as their creation. */
const definitions = [...generateCrds()].map(([path, text]) => ({ path, body: parse(text) }));

/** A cluster in memory with Lastcall's resources. */
export async function modelClusterApi(clock: Clock): Promise<ModelApi> {
  const api = new ModelApi({ clock, rng: seededRng(1) });
  for (const { path, body } of definitions) {
    const answer = await api.send({ method: "POST", path: crdsPath, body });
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  }
  return api;
}
