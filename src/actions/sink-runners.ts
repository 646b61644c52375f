import type { ActionRunner } from "../contracts/action-runner.ts";
import type { ActionKind } from "../core/policy/action.ts";
import { messageRunner, type SinkTools } from "./action-sink.ts";
import { AlertmanagerSilencer } from "./alertmanager-silence.ts";
import { slackSink, teamsSink, telegramSink } from "./chat-sink.ts";
import { DatadogMuter } from "./datadog-mute.ts";
import { HttpCaller } from "./http-call.ts";
import { MackerelStatusSetter } from "./mackerel-status.ts";
import { cloudEventsSink } from "./webhook-sink.ts";

/** The runner of a kind whose receiver takes HTTP; undefined for any other. */
export function sinkRunner(kind: ActionKind, tools: SinkTools): ActionRunner | undefined {
  switch (kind) {
    case "alertmanagerSilence":
      return new AlertmanagerSilencer(tools) as ActionRunner;
    case "datadogMute":
      return new DatadogMuter(tools) as ActionRunner;
    case "mackerelStatus":
      return new MackerelStatusSetter(tools) as ActionRunner;
    case "slack":
      return messageRunner(slackSink, tools) as ActionRunner;
    case "teams":
      return messageRunner(teamsSink, tools) as ActionRunner;
    case "telegram":
      return messageRunner(telegramSink, tools) as ActionRunner;
    case "cloudEvents":
      return messageRunner(cloudEventsSink, tools) as ActionRunner;
    case "http":
      return new HttpCaller(tools) as ActionRunner;
    default:
      return undefined;
  }
}
