import type { AgentHealth } from "../../agent/agent-health.ts";
import { type Cloud, detectCloud } from "../../cloud/metadata/detect-cloud.ts";
import type { NoticeSource } from "../../contracts/cloud/notice-source.ts";
import { seconds } from "../../core/time/time.ts";
import type { CommandIo } from "../command-line/command-io.ts";

export interface SourceSearch {
  readonly options: {
    readonly cloud: "auto" | Cloud;
    readonly metadataUrl?: string | undefined;
  };
  readonly io: Pick<CommandIo, "fetch" | "clock" | "rng">;
  readonly health: AgentHealth;
}

/** The source of the cloud that was named; with `auto` of the first that answers, however late. */
export async function findNoticeSource(
  search: SourceSearch,
  signal: AbortSignal,
): Promise<NoticeSource> {
  const { options, io, health } = search;
  const { fetch, clock, rng } = io;
  const common = { baseUrl: options.metadataUrl, fetch, clock, rng };
  let cloud = options.cloud === "auto" ? undefined : options.cloud;
  while (cloud === undefined) {
    health.turned("cloud search");
    cloud = await detectCloud(common, signal);
    if (cloud === undefined) await clock.sleep(seconds(1), signal);
  }
  health.ended("cloud search");
  switch (cloud) {
    case "aws":
      return new (await import("../../cloud/aws/notice-source.ts")).AwsNoticeSource(common);
    case "gcp":
      return new (await import("../../cloud/gcp/notice-source.ts")).GcpNoticeSource(common);
    case "azure":
      return new (await import("../../cloud/azure/notice-source.ts")).AzureNoticeSource(common);
  }
}
