import type { ActionRunner } from "../contracts/action-runner.ts";
import type { ActionKind } from "../core/policy/action.ts";
import { messageRunner, type SinkOptions } from "./action-sink.ts";
import { AlertmanagerSilencer } from "./alertmanager-silence.ts";
import { slackSink, teamsSink, telegramSink } from "./chat-sink.ts";
import { DatadogMuter } from "./datadog-mute.ts";
import { HttpCaller } from "./http-call.ts";
import { MackerelStatusSetter } from "./mackerel-status.ts";
import { cloudEventsSink } from "./webhook-sink.ts";

/** The runner of a kind with an HTTP receiver; undefined for other kinds. */
export function sinkRunner(kind: ActionKind, options: SinkOptions): ActionRunner | undefined {
  switch (kind) {
    case "alertmanagerSilence":
      return new AlertmanagerSilencer(options) as ActionRunner;
    case "datadogMute":
      return new DatadogMuter(options) as ActionRunner;
    case "mackerelStatus":
      return new MackerelStatusSetter(options) as ActionRunner;
    case "slack":
      return messageRunner(slackSink, options) as ActionRunner;
    case "teams":
      return messageRunner(teamsSink, options) as ActionRunner;
    case "telegram":
      return messageRunner(telegramSink, options) as ActionRunner;
    case "cloudEvents":
      return messageRunner(cloudEventsSink, options) as ActionRunner;
    case "http":
      return new HttpCaller(options) as ActionRunner;
    default:
      return undefined;
  }
}
