import { parseManifests } from "../../audit/input/parse-manifests.ts";
import { fieldLines, type ManifestFiles, readText } from "../../audit/input/read-manifests.ts";
import { type PlaceOfField, readKubeletConfiguration } from "../../audit/objects/audit-node.ts";
import { type Platform, parsePlatform } from "../../audit/platform.ts";
import { LastcallError } from "../../errors.ts";

/**
 * A platform as typed; reads its file if it names one. Throws USAGE, INPUT_UNREADABLE,
 * INPUT_INVALID.
 */
export async function loadPlatform(text: string, files: ManifestFiles): Promise<Platform> {
  const request = parsePlatform(text);
  if (request.kind === "Ready") return request.platform;
  const { json, place } = await loadDocument(request.path, files);
  const groups = readKubeletConfiguration(json, place);
  return { name: request.name, groups, source: "File" };
}

/** The single document of a small file, and the lines of its fields. */
export async function loadDocument(
  path: string,
  files: ManifestFiles,
): Promise<{ readonly json: unknown; readonly place: PlaceOfField }> {
  const text = await readText(path, files);
  if (text.kind === "Problem") throw new LastcallError("INPUT_UNREADABLE", text.problem);
  const { documents, problems } = parseManifests({ file: path, text: text.text });
  if (problems.length > 0) throw new LastcallError("INPUT_INVALID", problems.join("\n"));
  const [document] = documents;
  if (documents.length === 1 && document !== undefined) {
    const lineOf = fieldLines(text.text, document);
    return {
      json: document.value,
      place: (field) => `${path}:${lineOf(field) ?? document.line}`,
    };
  }
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot read ${path}: it contains ${documents.length} documents, expected exactly one`,
  );
}
