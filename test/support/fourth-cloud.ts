import type { CloudFacts } from "../../src/cloud/facts/cloud-facts.ts";
import type { CloudName } from "../../src/cloud/facts/known-clouds.ts";
import type { NoticeSink, NoticeSource } from "../../src/contracts/cloud.ts";
import type {
  Cloud,
  CloudAccess,
  CloudAdapters,
  NoticeSourceOptions,
} from "../../src/contracts/cloud-descriptor.ts";
import { instant, parseInstant } from "../../src/core/time/time.ts";

/** When all machines of Nimbus were launched. */
export const launchedAt = parseInstant("2026-11-20T00:00:00Z") ?? instant(0);

/** A cloud that exists only here: what its folder would declare. */
export const nimbusFacts: CloudFacts = {
  name: "nimbus",
  kubernetes: "nks",
  scheme: "nimbus://",
  idForm: "nimbus://",
  parseId: (providerID) => {
    const [, zone, instance] = /^nimbus:\/\/([a-z]+)\/([a-z0-9]+)$/.exec(providerID) ?? [];
    if (zone === undefined || instance === undefined) return undefined;
    return { cloud: "nimbus", instance, key: `nimbus/${instance}` };
  },
  zoneIn: (providerID) => /^nimbus:\/\/([a-z]+)\//.exec(providerID)?.[1],
  idReuse: "Usual",
  spotLabels: { "nimbus.example/price": { spot: ["spot"], stable: "full" } },
  poolLabels: ["nimbus.example/pool"],
  removalMarks: [{ rival: "Nimbus reaper", taint: "nimbus.example/reaping", removes: true }],
  noticeConditions: {
    types: ["NimbusReclaim"],
    causes: { NimbusReclaim: "SpotInterruption" },
    eventCauses: {},
  },
  metadataAddresses: [{ subnet: "203.0.113.0", bits: 29 }],
};

const nimbusOptions = [
  {
    name: "nimbus-token",
    type: "text",
    value: "TOKEN",
    commands: ["run"],
    help: "Token of Nimbus",
  },
] as const;

const nimbusSetupOptions = [
  {
    name: "tenant",
    type: "text",
    value: "ID",
    commands: ["setup"],
    parts: ["nimbus"],
    help: "With nimbus, required: the tenant",
  },
] as const;

export const nimbus = {
  facts: nimbusFacts,
  options: nimbusOptions,
  setup: {
    options: nimbusSetupOptions,
    examples: ["--tenant t1"],
    cluster: ", required: the cluster",
    asksRelease: true,
  },
  audit: {
    ownLabels: /^nimbus\.example\//,
    platforms: { nks: { totalSeconds: 40, criticalSeconds: 10, what: "NKS" } },
    usualPlatforms: ["nks"],
    platformOf: () => "nks",
  },
  doctor: {
    tools: [{ tool: "Nimbus reaper", image: /nimbus-reaper/, rival: true }],
    systemPodsNeedQuota: true,
    agentless: "on Nimbus nothing yet",
  },
  probe: {
    request: { path: "/nimbus/id", headers: {} },
    fits: ({ status, text }) => status === 200 && text === "nimbus",
  },
  noticeSource: async (options: NoticeSourceOptions) => new NimbusSource(options),
} satisfies Cloud;

/** Says at once that the machine ends. */
class NimbusSource implements NoticeSource {
  readonly cloud = "nimbus" as CloudName;
  readonly channels = ["nimbus/reclaim"];
  readonly #options: NoticeSourceOptions;

  constructor(options: NoticeSourceOptions) {
    this.#options = options;
  }

  run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    const at = this.#options.clock.now();
    const notice = { cause: "SpotInterruption", noticedAt: at, eventId: "e1" } as const;
    const notices = [{ ...notice, source: "nimbus/reclaim" }];
    const reading = { kind: "Read", notices, ignored: [], problems: [] } as const;
    sink.onTurn("nimbus/reclaim");
    sink.onReading({ channel: "nimbus/reclaim", reading, at });
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }
}

/** The providerIDs of the machines that have been released. */
export const released: string[] = [];

export const nimbusAdapters = {
  access: async ({ nimbusToken }: { readonly nimbusToken?: string }): Promise<CloudAccess> => ({
    machines: {
      releaser: {
        describe: async () => ({ kind: "Absent" }),
        check: async () => ({ kind: "Possible", permission: "Granted" }),
        release: async ({ providerID }) => {
          released.push(`${providerID} with ${nimbusToken}`);
          return { kind: "AlreadyGone" };
        },
      },
      launchTimes: {
        launchTimesOf: async (providerIDs) => ({
          bornAt: new Map(providerIDs.map((one) => [one, launchedAt])),
          faults: [],
        }),
      },
    },
  }),
  setupScript: async ({ tenant }: { readonly tenant?: string }) => `nimbus grant ${tenant}\n`,
} satisfies CloudAdapters;
