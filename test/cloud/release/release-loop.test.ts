import { describe, expect, it } from "vitest";
import { releaseByLooking, type Standing } from "../../../src/cloud/release/release-loop.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const never = new AbortController().signal;
const late = new LastcallError("CLOUD_REFUSED", "Cannot release: still there", { retryable: true });
const locked = new LastcallError("CLOUD_CREDENTIALS", "Cannot look: the token has expired");

/**
 * Releases a machine whose state follows the list, poll by poll, and then stays at its last entry.
 */
async function release(looks: readonly (Standing | LastcallError)[], onAct = () => {}) {
  const clock = new ManualClock();
  let round = 0;
  const work = releaseByLooking<Standing>(
    {
      machine: {
        look: async () => {
          const now = looks[Math.min(round++, looks.length - 1)] as Standing | LastcallError;
          if (now instanceof LastcallError) throw now;
          return now;
        },
        standing: (seen) => seen,
        act: async () => onAct(),
        stillThere: () => late,
      },
      lastLook: async () => "Clear",
    },
    { clock, rng: seededRng(1), goneWithinMs: minutes(20) },
    never,
  );
  const ended = work.then(
    ({ kind }) => kind as string,
    (error: LastcallError) => `${error.code}, ${error.retryable ? "again" : "given up"}`,
  );
  await clock.advance(minutes(21));
  return ended;
}

describe("a fault of a release", () => {
  it.each([
    [
      "of a machine that is being released is retried after a credential error",
      ["Staying", locked],
      "MACHINE_LEAVING, again",
    ],
    ["of a slow one is retried", ["Staying", "Leaving"], "MACHINE_LEAVING, again"],
    [
      "of one that somebody else is releasing is retried",
      ["Leaving", locked],
      "MACHINE_LEAVING, again",
    ],
    [
      "of one that stays after an accepted request is left to the cloud",
      ["Staying"],
      "CLOUD_REFUSED, again",
    ],
    ["of one without a request is left to the cloud", [locked], "CLOUD_CREDENTIALS, given up"],
  ] as const)("%s", async (_, looks, wanted) => {
    expect(await release(looks)).toBe(wanted);
  });
});

describe("a machine that was already leaving before it was released", () => {
  it.each([
    ["is requested if the notice is withdrawn", ["Leaving", "Leaving", "Staying", "Staying"], 1],
    ["is not requested if the machine goes", ["Leaving", "Leaving", "Leaving", "Leaving"], 0],
  ] as const)("%s", async (_, looks, asked) => {
    let acts = 0;
    const ended = await release([...looks, "Gone"], () => {
      acts += 1;
    });
    expect(acts).toBe(asked);
    expect(ended).toBe("Released");
  });

  it("is requested only once while its cloud still shows the old state", async () => {
    let acts = 0;
    const looks = [
      "Leaving",
      "Staying",
      "Staying",
      "Staying",
      "Staying",
      "Leaving",
      "Gone",
    ] as const;
    expect(await release(looks, () => acts++)).toBe("Released");
    expect(acts).toBe(1);
  });
});
