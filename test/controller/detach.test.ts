import { describe, expect, it } from "vitest";
import type { InstanceReleaser, ReleaseQuestion } from "../../src/contracts/cloud.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { silence, slack, useActionStage } from "../support/action-stage.ts";

const stage = useActionStage();

const spec = {
  lifetime: { max: "1h", reserve: "0s" },
  instance: { release: "Recreate" },
};
const replace = { name: "replace", at: "AtNotice", detach: {} };
const problem = "the instance is in no Auto Scaling group, set instance.release to DeleteInstance";

/** The group of n1, which `detach` takes it out of, and the cloud that releases it. */
function groupOfN1() {
  const group = { hasN1: true, canTerminate: true, asked: [] as ReleaseQuestion["detach"][] };
  const { releaser } = stage.world;
  const cloud: InstanceReleaser = {
    ...releaser,
    check: async (question, signal) => {
      const isN1 = question.providerID.endsWith("/n1");
      if (!isN1) return releaser.check(question, signal);
      group.asked.push(question.detach);
      const mayTerminate = question.detach === undefined || group.canTerminate;
      if (!mayTerminate) return { kind: "Impossible", problem: "a permission is missing" };
      if (group.hasN1 || question.detach === "Begun") return releaser.check(question, signal);
      return { kind: "Impossible", problem };
    },
    release: async (request, signal) => {
      const isLost = !group.hasN1 && request.isOutOfGroup?.() !== true;
      if (isLost && request.providerID.endsWith("/n1")) {
        throw new LastcallError("CLOUD_REFUSED", `Cannot release n1: ${problem}`);
      }
      return releaser.release(request, signal);
    },
  };
  stage.tell.onCall = (call, { target }) => {
    if (call === "apply" && target.node === "n1") group.hasN1 = false;
  };
  return { group, releaserFor: () => cloud };
}

const ended = () => stage.world.statusOf("n1").phase === "Ended";

describe("a planned departure with an action detach", () => {
  it.each(["AtNotice", "BeforeDrain", "AfterDrain"])(
    "releases its machine, detached %s",
    async (at) => {
      const { group, releaserFor } = groupOfN1();
      stage.start([{ ...replace, at }], spec, { releaserFor });
      await stage.world.passUntil(ended, minutes(120));
      expect(group.hasN1).toBe(false);
      expect(stage.world.statusOf("n1")).toMatchObject({ outcome: "Planned", reason: "Released" });
      expect(stage.world.steps).toContain("release n1");
      expect(new Set(group.asked)).toEqual(new Set(["Ahead"]));
    },
  );

  it("releases it, although the request to detach it had no response", async () => {
    const { releaserFor } = groupOfN1();
    stage.hang(stage.tell);
    stage.start([{ ...replace, timeout: "2s", retries: 0 }], spec, { releaserFor });
    await stage.world.passUntil(ended, minutes(120));
    expect(stage.records).toMatchObject([{ state: "Failed", result: "ACTION_TIMEOUT" }]);
    expect(stage.world.statusOf("n1")).toMatchObject({ outcome: "Planned" });
  });

  it("releases it under the next leader, which checks again before it continues", async () => {
    const { group, releaserFor } = groupOfN1();
    const ask = { name: "ask", at: "AtNotice", required: true, timeout: "5m", ...silence };
    stage.hang(stage.mute);
    const first = stage.start([replace, ask], spec, { releaserFor });
    await stage.world.passUntil(() => stage.states.replace === "Done", minutes(120));
    first.abort();
    await stage.world.pass(seconds(1));
    stage.mute.latency = async () => {};
    stage.startController({ releaserFor });
    await stage.world.passUntil(ended, minutes(30));
    expect(group.asked.at(-1)).toBe("Begun");
    expect(stage.world.statusOf("n1")).toMatchObject({ outcome: "Planned" });
  });

  it("does not release a machine that something else has taken out of its group", async () => {
    const { group, releaserFor } = groupOfN1();
    stage.tell.fault = "ACTION_REFUSED";
    stage.start([replace], spec, { releaserFor });
    await stage.world.passUntil(ended, minutes(120));
    expect(group.hasN1).toBe(false);
    expect(stage.world.statusOf("n1")).toMatchObject({ outcome: "Failed" });
    expect(stage.world.steps).not.toContain("release n1");
  });

  it("is held before anything is touched if a detached machine could not be released", async () => {
    const { group, releaserFor } = groupOfN1();
    group.canTerminate = false;
    stage.start([replace], spec, { releaserFor });
    await stage.world.pass(minutes(120));
    expect(group.hasN1).toBe(true);
    expect(stage.world.statusOf("n1")).toMatchObject({ reason: "ReleaseImpossible" });
    expect(stage.world.stepsOf("n1")).toEqual([]);
  });
});

describe("the check of a machine", () => {
  it.each([
    ["has no such action", { name: "tell", at: "AtNotice", ...slack }],
    ["detaches it only at a notice", { ...replace, causes: ["SpotInterruption"] }],
    ["detaches it only at the end", { ...replace, at: "AtEnd" }],
  ])("is an ordinary one if the policy %s", async (_, action) => {
    const { group, releaserFor } = groupOfN1();
    stage.start([action], spec, { releaserFor });
    await stage.world.passUntil(() => group.asked.length > 0, minutes(120));
    expect(new Set(group.asked)).toEqual(new Set([undefined]));
  });
});
