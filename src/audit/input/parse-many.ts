import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { joinTexts, type ParsedText, parseManifests } from "./parse-manifests.ts";

/** A whole file, or some of its documents, which start at `firstLine`. */
export interface TextPart {
  readonly file: string;
  readonly text: string;
  /** Counted from 1. */
  readonly firstLine: number;
}

/**
 * Below this size a thread costs more than it saves: it takes some 100 ms to start, and parses 1 MB
 * a second.
 */
const threadedFromChars = 1_500_000;

/** A long file is split at document markers into parts of about this size. */
const partChars = 200_000;

/**
 * Parses texts in the given order, with one result per text. Parsing YAML is nearly all of an
 * audit's work, so large inputs are parsed on all cores.
 */
export async function parseMany(
  texts: readonly { readonly file: string; readonly text: string }[],
  options: { readonly threads?: number; readonly threadedFromChars?: number } = {},
): Promise<readonly ParsedText[]> {
  const chars = texts.reduce((sum, one) => sum + one.text.length, 0);
  const threads = options.threads ?? Math.min(availableParallelism(), 8);
  if (chars < (options.threadedFromChars ?? threadedFromChars) || threads < 2) {
    return texts.map((one) => parseManifests(one));
  }
  const parts = texts.map((one) => cutAtDocuments(one.file, one.text));
  const parsed = await parseOnThreads(parts.flat(), threads);
  let from = 0;
  return parts.map((own) => {
    const results = parsed.slice(from, from + own.length);
    from += own.length;
    return joinTexts(results);
  });
}

/**
 * Splits YAML at lines that start with `---`, which ends a document anywhere (YAML 1.2.2, 9.1.2).
 * Text with a directive is not split, because a directive belongs to the document after its marker;
 * neither is JSON.
 */
export function cutAtDocuments(file: string, text: string): readonly TextPart[] {
  if (text.length < 2 * partChars || /^%/m.test(text) || /^\s*[[{]/.test(text)) {
    return [{ file, text, firstLine: 1 }];
  }
  const parts: TextPart[] = [];
  let from = 0;
  let firstLine = 1;
  while (from < text.length) {
    const mark = text.indexOf("\n---", from + partChars);
    const to = mark < 0 ? text.length : mark + 1;
    const part = text.slice(from, to);
    parts.push({ file, text: part, firstLine });
    firstLine += part.split("\n").length - 1;
    from = to;
  }
  return parts;
}

/**
 * If no thread can be started (because its code was not bundled, for example), this one does all
 * the work.
 */
async function parseOnThreads(
  parts: readonly TextPart[],
  threads: number,
): Promise<readonly ParsedText[]> {
  const results: (readonly ParsedText[])[] = [];
  const next = batchesOf(parts).entries();
  const run = async () => {
    const worker = startWorker();
    for (const [at, batch] of next) {
      results[at] = await worker
        .parse(batch)
        .catch(() => batch.map((part) => parseManifests(part)));
    }
    await worker.stop();
  };
  await Promise.all(Array.from({ length: threads }, run));
  return results.flat();
}

/** Small files are sent together: a message to a thread and back costs as much as parsing one. */
function batchesOf(parts: readonly TextPart[]): readonly (readonly TextPart[])[] {
  const batches: TextPart[][] = [];
  let chars = Number.POSITIVE_INFINITY;
  for (const part of parts) {
    if (chars >= partChars) {
      batches.push([]);
      chars = 0;
    }
    batches.at(-1)?.push(part);
    chars += part.text.length;
  }
  return batches;
}

interface ParseWorker {
  parse(batch: readonly TextPart[]): Promise<readonly ParsedText[]>;
  stop(): Promise<unknown>;
}

/** One thread; `parse` is called again only after the previous call has settled. */
function startWorker(): ParseWorker {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./parse-worker.${extension}`, import.meta.url));
  let settle: PromiseWithResolvers<readonly ParsedText[]> | undefined;
  let broken: Error | undefined;
  worker.on("message", (results: readonly ParsedText[]) => settle?.resolve(results));
  worker.on("error", (error: Error) => {
    broken = error;
    settle?.reject(error);
  });
  return {
    parse: (batch) => {
      if (broken !== undefined) return Promise.reject(broken);
      settle = Promise.withResolvers<readonly ParsedText[]>();
      worker.postMessage(batch);
      return settle.promise;
    },
    stop: () => worker.terminate(),
  };
}
