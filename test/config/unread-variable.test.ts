import { expect, it } from "vitest";
import { commands, variableOf } from "../../src/config/options/option.ts";
import { options } from "../../src/config/options/options.ts";
import { unknownVariables } from "../../src/config/options/resolve-options.ts";

it.each([
  ["LASTCALL_DRYRUN", " (did you mean LASTCALL_DRY_RUN?)"],
  ["LASTCALL_LEADER_ELECTION", " (did you mean LASTCALL_LEADER_ELECT?)"],
  ["LASTCALL_LOGLEVEL", " (did you mean LASTCALL_LOG_LEVEL?)"],
  ["LASTCALL_WEBHOOK_ADDRESSES", ""],
  ["LASTCALL_", ""],
])("the variable %s, which is no option, is named with the nearest one", (name, meant) => {
  const sentence = `The environment variable ${name} is unknown and does nothing${meant}`;
  expect(unknownVariables("run", { [name]: "secret" })).toEqual([sentence]);
});

it.each(commands)("no variable of an option is unknown to %s", (command) => {
  const env = Object.fromEntries(options.map(({ name }) => [variableOf(name), "x"]));
  expect(unknownVariables(command, env)).toEqual([]);
});

// https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
it.each([
  "LASTCALL_SERVICE_HOST",
  "LASTCALL_SERVICE_PORT",
  "LASTCALL_SERVICE_PORT_METRICS",
  "LASTCALL_PORT",
  "LASTCALL_PORT_9101_TCP",
  "LASTCALL_PORT_9101_TCP_PROTO",
  "LASTCALL_METRICS_PORT_9101_TCP_ADDR",
])("the variable %s, which Kubernetes sets for a Service, is not reported", (name) => {
  expect(unknownVariables("run", { [name]: "tcp://10.0.0.1:9101" })).toEqual([]);
});

it.each(["LASTCALL_DRYRUN", "PATH", "LASTCALLED"])(
  "an unset or foreign %s is not reported",
  (name) => {
    expect(unknownVariables("plan", { [name]: name === "LASTCALL_DRYRUN" ? "" : "x" })).toEqual([]);
  },
);
