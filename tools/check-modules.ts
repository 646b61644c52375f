/** Applies the rules of tools/module-rules.ts, with the exceptions that still exist. */
import { moduleOf } from "./module-graph.ts";
import { type Exceptions, moduleFindings } from "./module-rules.ts";
import { report, sourceFiles } from "./source-tree.ts";

const except: Exceptions = {
  types: [],
  // Names that others define (kubeconfig, Lambda), the contexts of a step and of the model, and an
  // order of deadlines.
  bags: ["ApiContext", "Context", "LambdaContext", "DeadlineOrder"],
};

const modules = sourceFiles(["src", "test", "tools", "bench"]).map(moduleOf);
process.exitCode = report("check-modules", moduleFindings(modules, except));
