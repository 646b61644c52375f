/** The rules of tools/module-rules.ts, and what still breaks them. */
import { moduleOf } from "./module-graph.ts";
import { type Exceptions, moduleFindings } from "./module-rules.ts";
import { report, sourceFiles } from "./source-tree.ts";

const except: Exceptions = {
  types: [],
  folders: {},
  smallFiles: ["src/controller/notice/fenced-hooks.ts"],
  // A step's surroundings, the model's, a kubeconfig's and Lambda's own word; deadlines in order.
  bags: ["StepContext", "ApiContext", "Context", "LambdaContext", "DeadlineOrder"],
};

const modules = sourceFiles(["src", "test", "tools", "bench"]).map(moduleOf);
process.exitCode = report("check-modules", moduleFindings(modules, except));
