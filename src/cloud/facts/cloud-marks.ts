import type { CloudFacts, LifetimeLimit, NoticeConditions } from "./cloud-facts.ts";
import { knownClouds } from "./known-clouds.ts";

/** The labels by which clouds and tools mark Spot nodes. */
export const spotLabels: CloudFacts["spotLabels"] = Object.assign(
  {},
  ...knownClouds.map((cloud) => cloud.spotLabels),
);

/** How old machines with a label may become. */
export const lifetimeLimits: readonly LifetimeLimit[] = knownClouds.flatMap(
  (cloud) => cloud.lifetimeLimits ?? [],
);

/** The conditions of a Node by which platforms announce its end. */
export const noticeConditions: readonly NoticeConditions[] = knownClouds.flatMap(
  (cloud) => cloud.noticeConditions ?? [],
);

/** How the providerIDs of machines begin. */
export const providerIdForms: readonly string[] = knownClouds.map(({ idForm }) => idForm);
