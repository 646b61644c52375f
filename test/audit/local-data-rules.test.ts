import { describe, expect, it } from "vitest";
import { remarks } from "./support/rule-remarks.ts";

describe("a claim whose volume is on one machine", () => {
  const set = (claim: string) =>
    `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: es, namespace: shop}, spec: {replicas: 2, template: {spec: {containers: [{name: es, image: es}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {${claim}}}]}}\n---\n`;
  const storageClass = (name: string, provisioner: string, more = "", marks = "") =>
    `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: ${name}${marks}}, provisioner: ${provisioner}${more}}\n---\n`;
  const waits = ", volumeBindingMode: WaitForFirstConsumer";
  const marks = ', annotations: {storageclass.kubernetes.io/is-default-class: "true"}';
  const localVolume = (claim: string) =>
    `{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv-1}, spec: {local: {path: /mnt/d}, claimRef: {namespace: shop, name: ${claim}}}}\n---\n`;
  const deployment =
    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: es, namespace: shop}, spec: {replicas: 1, template: {spec: {containers: [{name: es, image: es}], volumes: [{name: data, persistentVolumeClaim: {claimName: files}}]}}}}\n---\n";
  const claim =
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: files, namespace: shop}, spec: {storageClassName: fast}}\n---\n";
  const named = "storageClassName: fast";

  it.each([
    ["by its class", set(named) + storageClass("fast", "topolvm.io"), "StorageClass fast"],
    [
      "by the default class",
      set("") + storageClass("std", "rancher.io/local-path", "", marks),
      "StorageClass std",
    ],
    [
      "by a class without a provisioner",
      set(named) + storageClass("fast", "kubernetes.io/no-provisioner", waits),
      "StorageClass fast",
    ],
    ["by the volume of one pod", set(named) + localVolume("data-es-1"), "PersistentVolume pv-1"],
    ["of a claim by its volume", deployment + localVolume("files"), "PersistentVolume pv-1"],
    [
      "of a claim by its class",
      deployment + claim + storageClass("fast", "topolvm.io"),
      "StorageClass fast",
    ],
  ])("is a warning, if the input says so %s", async (_, yaml, source) => {
    expect(await remarks("local-data", yaml)).toEqual([
      `warning Keeps the volume data on the disk of one machine (${source}), which is lost with the node; a new pod waits in vain for that machine`,
    ]);
  });

  it.each([
    ["another class", set("storageClassName: gp3") + storageClass("fast", "topolvm.io")],
    ["no class at all", set('storageClassName: ""') + storageClass("s", "topolvm.io", "", marks)],
    ["a disk of the cloud", set(named) + storageClass("fast", "ebs.csi.aws.com", waits)],
    ["a class that is not in the input", set(named)],
    ["the volume of another set", set(named) + localVolume("data-es-master-0")],
    ["a claim of another namespace", deployment + localVolume("files").replace("shop", "other")],
  ])("is not reported with %s", async (_, yaml) => {
    expect(await remarks("local-data", yaml)).toEqual([]);
  });
});
