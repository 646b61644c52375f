import type { Cloud, NoticeSourceOptions } from "../../contracts/cloud-descriptor.ts";
import { seconds } from "../../core/time/time.ts";
import { gcpFacts } from "./gcp-facts.ts";
import { gcpOptions, gcpSetupOptions } from "./gcp-options.ts";

/** Compute Engine, and GKE. */
export const gcp = {
  facts: gcpFacts,
  options: gcpOptions,
  setup: {
    options: gcpSetupOptions,
    examples: [
      "--project my-project-1 > setup.sh",
      "--project my-project-1 --cluster main --location europe-west1 --apply",
    ],
    cluster: " and --location: check first that it has Workload Identity",
    asksRelease: true,
  },
  audit: {
    ownLabels: /^cloud\.google\.com\//,
    // Sources: Google Cloud "Spot VMs" and "Preemptible VMs" of GKE; the GKE API's
    // `shutdownGracePeriodSeconds` for the 120 s option (15 s for critical pods as in its example;
    // with another share use `kubelet:120s/30s`).
    platforms: {
      gke: { totalSeconds: 30, criticalSeconds: 15, what: "GKE after 1.22.8-gke.200" },
      "gke-25": { totalSeconds: 30, criticalSeconds: 5, what: "GKE 1.20 to 1.22.8-gke.200" },
      "gke-120": {
        totalSeconds: 120,
        criticalSeconds: 15,
        what: "GKE Spot pools opted in to 120 s, from 1.35.0-gke.1171000",
      },
    },
    usualPlatforms: ["gke"],
    platformOf: ({ kubeletVersion }) => (isOldGke(kubeletVersion) ? "gke-25" : "gke"),
  },
  doctor: {
    tools: [
      { tool: "estafette's preemptible killer", image: /gke-preemptible-killer/, rival: true },
      {
        tool: "GCP node termination handler",
        image: /gke-node-termination-handler|k8s-node-termination-handler/,
        rival: true,
      },
    ],
    systemPodsNeedQuota: true,
    agentless: "on Compute Engine --gcp-preemption-poll",
  },
  probe: {
    request: {
      path: "/computeMetadata/v1/instance/id",
      headers: { "metadata-flavor": "Google" },
      timeoutMs: seconds(2),
    },
    fits: ({ status, flavor }) => status === 200 && flavor === "Google",
  },
  noticeSource: async (options: NoticeSourceOptions) =>
    new (await import("./notice-source.ts")).GcpNoticeSource(options),
} as const satisfies Cloud;

/**
 * Up to 1.22.8-gke.200 the critical share was 5 s. Source: Google Cloud, "Preemptible VMs" of GKE.
 */
function isOldGke(kubeletVersion: string): boolean {
  const form = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?:-gke\.(\d+))?/;
  const [, ...found] = form.exec(kubeletVersion) ?? [];
  const [major = 0, minor = 0, patch = 0, build = 0] = found.map((part) => Number(part ?? 0));
  if (major !== 1 || minor !== 22) return major === 1 && minor > 0 && minor < 22;
  return patch < 8 || (patch === 8 && build <= 200);
}
