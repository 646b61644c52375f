import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { transformSync } from "rolldown/utils";

/** Node runs TypeScript, but not the elements of a page. */
registerHooks({
  load: (url, context, nextLoad) => {
    if (!url.endsWith(".tsx")) return nextLoad(url, context);
    const path = fileURLToPath(url);
    const jsx = { runtime: "automatic", importSource: "preact" } as const;
    const { code, errors } = transformSync(path, readFileSync(path, "utf8"), { jsx });
    if (errors.length > 0) throw new Error(`Cannot compile ${path}: ${errors[0]?.message}`);
    return { format: "module", source: code, shortCircuit: true };
  },
});
