import { realClock } from "../../src/runtime/real-clock.ts";
import { boardContract } from "../contract/board.contract.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

boardContract("a model cluster", async () => {
  const api = await modelClusterApi(realClock);
  return { api, close: () => Promise.resolve() };
});
