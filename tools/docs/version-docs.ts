import { kubernetesVersion } from "../../test/controlplane/build.ts";
import {
  patchOf,
  readTriedVersions,
  triedFiles,
  triedVersions,
  versionTable,
} from "../../test/e2e/version-list.ts";

/** The generated page `docs/kubernetes-versions.md`, by path. */
export function generateVersionDocs(): ReadonlyMap<string, string> {
  const tried = readTriedVersions();
  const pinned = triedVersions.map(patchOf);
  const stale = tried.filter(({ version, passed }) => {
    const known = Object.keys(passed).every((one) => triedFiles.some(({ file }) => file === one));
    return !pinned.includes(version) || !known;
  });
  if (stale.length > 0) {
    throw new Error(
      `Cannot list the results of ${stale.map(({ version }) => version).join(", ")}: test/controlplane/versions or test/e2e/version-list.ts has changed since, run npm run e2e:versions`,
    );
  }
  const all = pinned.map((version) => {
    return tried.find((one) => one.version === version) ?? { version, passed: {} };
  });
  return new Map([["docs/kubernetes-versions.md", page(versionTable(all))]]);
}

function page(table: string): string {
  const [oldest, newest] = [triedVersions[0], triedVersions.at(-1)];
  const usual = kubernetesVersion("go.mod");
  return `<!-- Generated from test/e2e/versions.json by \`npm run generate\`; \`npm run e2e:versions\` writes that. -->
# Kubernetes versions

Lastcall needs Kubernetes ${oldest} or later. All end-to-end tests run on ${usual}; CI runs no other version.
\`npm run e2e:versions\` runs those below on the oldest and the newest version: with its API server, controller manager,
scheduler, etcd and kubectl, and with kwok's nodes. This is what it found last:

${table}

"Not shown" means that no run is recorded in which all tests of the file passed. The versions between
${oldest} and ${newest} are not run. The chart rejects an older cluster, and \`lastcall doctor\` warns of one: without
ValidatingAdmissionPolicies nothing limits what a token may do, and an agent's token does not name its node, so no
agent reports a notice.
`;
}
