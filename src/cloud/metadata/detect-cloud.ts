import type { Clock } from "../../contracts/clock.ts";
import type { NoticeSource } from "../../contracts/cloud/notices.ts";
import { seconds } from "../../core/time/time.ts";
import { MetadataClient, type MetadataFetch, type MetadataRequest } from "./metadata-client.ts";

export type Cloud = NoticeSource["cloud"];

interface Probe {
  readonly cloud: Cloud;
  readonly request: MetadataRequest;
  /** What no other service at the same address answers. */
  readonly fits: (answer: {
    readonly status: number;
    readonly flavor: string | null;
    readonly text: string;
  }) => boolean;
}

const timeoutMs = seconds(2);

/** Each cloud has a question that the two others refuse. They all listen on 169.254.169.254. */
const probes: readonly Probe[] = [
  {
    cloud: "gcp",
    request: {
      path: "/computeMetadata/v1/instance/id",
      headers: { "metadata-flavor": "Google" },
      timeoutMs,
    },
    fits: ({ status, flavor }) => status === 200 && flavor === "Google",
  },
  {
    cloud: "aws",
    request: {
      method: "PUT",
      path: "/latest/api/token",
      headers: { "x-aws-ec2-metadata-token-ttl-seconds": "60" },
      timeoutMs,
    },
    fits: ({ status, text }) =>
      status === 200 && /^[\x21-\x7e]{1,1024}$/.test(text.trim()) && !text.startsWith("<"),
  },
  {
    cloud: "azure",
    request: {
      path: "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
      headers: { metadata: "true" },
      timeoutMs,
    },
    fits: ({ status, text }) =>
      status === 200 && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(text.trim()),
  },
];

/**
 * Whose machine this is, by asking all three; undefined where none of them answers in its own way.
 * One round: the caller asks again, since a metadata service may come up after us.
 */
export async function detectCloud(
  options: {
    readonly baseUrl?: string | undefined;
    readonly fetch: MetadataFetch;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<Cloud | undefined> {
  const { baseUrl = "http://169.254.169.254", fetch, clock } = options;
  const client = new MetadataClient({ baseUrl, fetch, clock });
  const fits = await Promise.all(
    probes.map(async (probe) => {
      try {
        const { status, text, header } = await client.ask(probe.request, signal);
        return probe.fits({ status, text, flavor: header("metadata-flavor") });
      } catch {
        // Nobody there, or somebody else: not this cloud.
        return false;
      }
    }),
  );
  signal.throwIfAborted();
  return probes.find((_, place) => fits[place])?.cloud;
}
