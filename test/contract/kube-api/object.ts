import { describe, expect, it } from "vitest";
import {
  configMap,
  configMaps,
  Dialog,
  field,
  leases,
  metadataOf,
  mustBe,
  mustRefuse,
  nodes,
  pods,
  type TargetOf,
  until,
} from "./dialog.ts";

export function objectSentences(target: TargetOf): void {
  describe("objects", () => {
    const maps = configMaps(target);

    it("sets the system fields of a new object", async () => {
      const made = await maps.mustCreate(configMap("born", { a: "1" }));
      expect(made).toMatchObject({ apiVersion: "v1", kind: "ConfigMap", data: { a: "1" } });
      const metadata = metadataOf(made);
      expect(metadata.namespace).toBe(target().namespace);
      expect(metadata.uid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      expect(Number(metadata.resourceVersion)).toBeGreaterThan(0);
      expect(metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(await maps.mustGet("born")).toEqual(made);
    });

    it("generates a name from generateName and five more characters", async () => {
      const made = await maps.mustCreate({ metadata: { generateName: "made-" } });
      expect(metadataOf(made).name).toMatch(/^made-[a-z0-9]{5}$/);
    });

    it("rejects a second object of the same name with AlreadyExists", async () => {
      await maps.mustCreate(configMap("twice"));
      const status = mustRefuse(await maps.create(configMap("twice")), {
        status: 409,
        reason: "AlreadyExists",
      });
      expect(status).toMatchObject({
        message: 'configmaps "twice" already exists',
        details: { name: "twice", kind: "configmaps" },
      });
    });

    it("returns NotFound for an object that does not exist", async () => {
      const status = mustRefuse(await maps.get("nobody"), { status: 404, reason: "NotFound" });
      expect(status).toMatchObject({
        message: 'configmaps "nobody" not found',
        details: { name: "nobody", kind: "configmaps" },
      });
    });

    it.each([
      "/apis/nowhere.example/v1/things",
      "/apis/policy/v1beta1/poddisruptionbudgets",
      "/api/v1/things",
    ])("returns 404 for %s, which is not served", async (path) => {
      expect(await target().api.send({ method: "GET", path })).toMatchObject({ status: 404 });
    });

    it("rejects an object in a namespace that does not exist", async () => {
      const path = "/api/v1/namespaces/no-such-namespace/configmaps";
      const answer = await target().api.send({ method: "POST", path, body: configMap("lost") });
      const status = mustRefuse(answer, { status: 404, reason: "NotFound" });
      expect(status.message).toBe('namespaces "no-such-namespace" not found');
    });

    it("rejects a name that is not a DNS name as Invalid", async () => {
      const status = mustRefuse(await maps.create(configMap("Not_A_Name")), {
        status: 422,
        reason: "Invalid",
      });
      expect(field(status, "details.causes.0.field")).toBe("metadata.name");
    });

    it.each(["a".repeat(64), "the night shift", "-a", "a."])(
      "rejects the label value %j as Invalid, also of an object that exists",
      async (value) => {
        const refusal = { status: 422, reason: "Invalid" };
        const metadata = { name: "labelled", labels: { "suite.example/of": value } };
        const created = mustRefuse(await maps.create({ ...configMap("x"), metadata }), refusal);
        expect(field(created, "details.causes.0.field")).toBe("metadata.labels");
        await maps.mustCreate(configMap("unlabelled"));
        mustRefuse(
          await maps.merge("unlabelled", { metadata: { labels: metadata.labels } }),
          refusal,
        );
        const labels = { "suite.example/of": "a".repeat(63) };
        mustBe(200, await maps.merge("unlabelled", { metadata: { labels } }));
        mustBe(200, await maps.delete("unlabelled"));
      },
    );

    it("does not store a dry run", async () => {
      mustBe(201, await maps.create(configMap("dry"), { dryRun: "All" }));
      mustRefuse(await maps.get("dry"), { status: 404, reason: "NotFound" });
    });

    it("changes the resourceVersion with every change and with nothing else", async () => {
      const first = await maps.mustCreate(configMap("counted", { a: "1" }));
      const second = mustBe(200, await maps.merge("counted", { data: { a: "2" } }));
      const same = mustBe(200, await maps.merge("counted", { data: { a: "2" } }));
      const versions = [first, second, same].map((one) => metadataOf(one).resourceVersion);
      expect(Number(versions[1])).toBeGreaterThan(Number(versions[0]));
      expect(versions[2]).toBe(versions[1]);
    });

    it("rejects a PUT from an old read with Conflict", async () => {
      const read = await maps.mustCreate(configMap("stale", { a: "1" }));
      mustBe(200, await maps.merge("stale", { data: { a: "2" } }));
      const status = mustRefuse(await maps.put("stale", { ...read, data: { a: "3" } }), {
        status: 409,
        reason: "Conflict",
      });
      expect(status.message).toContain("the object has been modified");
    });

    it("rejects a PUT with another uid with Conflict", async () => {
      await maps.mustCreate(configMap("other-uid"));
      const body = {
        ...configMap("other-uid"),
        metadata: { name: "other-uid", uid: "11111111-2222-4333-8444-555555555555" },
      };
      mustRefuse(await maps.put("other-uid", body), { status: 409, reason: "Conflict" });
    });

    it("rejects a PUT with another name as a bad request", async () => {
      await maps.mustCreate(configMap("named"));
      mustRefuse(await maps.put("named", configMap("renamed")), {
        status: 400,
        reason: "BadRequest",
      });
    });

    it("updates a Lease only from its newest version", async () => {
      const lease = leases(target);
      const body = {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "lead" },
        spec: { holderIdentity: "a", leaseDurationSeconds: 15 },
      };
      const read = await lease.mustCreate(body);
      const next = { ...read, spec: { holderIdentity: "b", leaseDurationSeconds: 15 } };
      mustBe(200, await lease.put("lead", next));
      mustRefuse(await lease.put("lead", next), { status: 409, reason: "Conflict" });
      mustRefuse(await lease.put("lead", body), { status: 422, reason: "Invalid" });
    });

    it("keeps the status that a Node is created with", async () => {
      const name = `born-${target().namespace}`;
      const body = {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name },
        spec: { providerID: `gce://demo/zone/${name}` },
        status: { nodeInfo: nodeInfo("boot-1"), capacity: { cpu: "4" } },
      };
      const made = await nodes(target).mustCreate(body);
      expect(field(made, "status.nodeInfo.bootID")).toBe("boot-1");
      mustBe(200, await nodes(target).delete(name));
    });

    it("answers a SelfSubjectAccessReview", async () => {
      const body = {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: { verb: "get", resource: "nodes" } },
      };
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      const review = mustBe(201, await target().api.send({ method: "POST", path, body }));
      expect(field(review, "status.allowed")).toBe(true);
    });

    it("reports its version", async () => {
      const version = mustBe(200, await target().api.send({ method: "GET", path: "/version" }));
      expect(version.gitVersion).toMatch(/^v1\.\d+\.\d+/);
    });

    it("stores an Event once and shows it under both API groups", async () => {
      const { api, namespace } = target();
      const regarding = { kind: "Pod", name: "p", namespace, uid: "u-1" };
      const body = {
        apiVersion: "events.k8s.io/v1",
        kind: "Event",
        metadata: { name: "p.123" },
        regarding,
        reason: "PodCut",
        note: "cut short",
        action: "Drain",
        type: "Warning",
        reportingController: "lastcall.dev/controller",
        reportingInstance: "lastcall-0",
        eventTime: "2026-11-20T00:00:00.000000Z",
      };
      const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
      mustBe(201, await api.send({ method: "POST", path, body }));
      const query = { fieldSelector: "involvedObject.uid=u-1" };
      const old = mustBe(
        200,
        await api.send({ method: "GET", path: `/api/v1/namespaces/${namespace}/events`, query }),
      );
      expect(old.items).toMatchObject([
        { involvedObject: regarding, message: "cut short", reason: "PodCut" },
      ]);
    });

    it("fills in a pod's defaults", async () => {
      const made = await pods(target).mustCreate({
        metadata: { name: "defaults" },
        spec: { schedulerName: "nobody", containers: [{ name: "main", image: "pause" }] },
      });
      expect(made.spec).toMatchObject({
        terminationGracePeriodSeconds: 30,
        restartPolicy: "Always",
        priority: 0,
      });
      expect(field(made, "status.phase")).toBe("Pending");
      expect(field(made, "spec.tolerations")).toMatchObject([
        { key: "node.kubernetes.io/not-ready", tolerationSeconds: 300 },
        { key: "node.kubernetes.io/unreachable", tolerationSeconds: 300 },
      ]);
    });

    it("scales a workload through its scale subresource, whose spec omits zero", async () => {
      const sets = new Dialog(
        target,
        ({ namespace }) => `/apis/apps/v1/namespaces/${namespace}/replicasets`,
      );
      const labels = { app: "scaled" };
      const spec = { schedulerName: "nobody", containers: [{ name: "main", image: "pause" }] };
      await sets.mustCreate({
        metadata: { name: "scaled" },
        spec: {
          replicas: 0,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec },
        },
      });
      const scale = await sets.mustGet("scaled/scale");
      expect(scale).toMatchObject({ kind: "Scale", status: { replicas: 0 } });
      expect(scale.spec).toEqual({});
      mustBe(200, await sets.merge("scaled/scale", { spec: { replicas: 2 } }));
      expect(field(await sets.mustGet("scaled"), "spec.replicas")).toBe(2);
      mustBe(200, await sets.delete("scaled"));
    });

    it("resolves a pod's priority class, and rejects one that does not exist", async () => {
      const named = (name: string, priorityClassName: string): object => ({
        metadata: { name },
        spec: {
          schedulerName: "nobody",
          priorityClassName,
          containers: [{ name: "main", image: "pause" }],
        },
      });
      const path = "/apis/scheduling.k8s.io/v1/priorityclasses";
      const name = `high-${target().namespace}`;
      const priorityClass = { metadata: { name }, value: 1000 };
      mustBe(201, await target().api.send({ method: "POST", path, body: priorityClass }));
      // A real API server's admission learns of the new class through its own watch.
      await until({
        what: "pods of the new class are taken",
        isMet: async () =>
          (await pods(target).create(named("probe", name), { dryRun: "All" })).status === 201,
      });
      const made = await pods(target).mustCreate(named("important", name));
      expect(field(made, "spec.priority")).toBe(1000);
      const refused = await pods(target).create(named("unknown", "no-such-class"));
      mustRefuse(refused, { status: 403, reason: "Forbidden" });
      await target().api.send({ method: "DELETE", path: `${path}/${name}` });
    });
  });
}

function nodeInfo(bootID: string): object {
  const empty = [
    "machineID",
    "systemUUID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
  ];
  return { ...Object.fromEntries(empty.map((one) => [one, ""])), bootID };
}
