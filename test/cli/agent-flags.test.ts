import { describe, expect, it } from "vitest";
import { agentFlags } from "../../src/config/options/resolve-options.ts";

describe("the flags of the agent's entry point", () => {
  it.each([
    [["agent", "--node-name", "n1"], { nodeName: "n1" }],
    [["--node-name=n1", "--cloud", "gcp"], { nodeName: "n1", cloud: "gcp" }],
    [["--dry-run"], { dryRun: true }],
    [["--no-dry-run"], { dryRun: false }],
    [["--dry-run=true"], { dryRun: true }],
    [["--dry-run=false"], { dryRun: false }],
    [["--metadata-url", "http://127.0.0.1:1/?a=b"], { metadataUrl: "http://127.0.0.1:1/?a=b" }],
    [["--node-name="], { nodeName: "" }],
    [[], {}],
  ])("%j parse as %j", (words, flags) => {
    expect(agentFlags(words)).toEqual(flags);
  });

  it.each([
    [["--node-name"], /--node-name has no value/],
    [["--node-name", "--dry-run"], /--node-name has no value/],
    [["--leader-elect"], /found --leader-elect/],
    [["--no-node-name"], /found --no-node-name/],
    [["--dry-run=maybe"], /--dry-run: found "maybe"/],
    [["run"], /found run/],
    [["-n", "x"], /found -n/],
  ])("%j are rejected with an explanation", (words, sentence) => {
    expect(() => agentFlags(words)).toThrow(sentence);
  });
});
