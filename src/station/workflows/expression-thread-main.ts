import { parentPort } from "node:worker_threads";
import { evaluateRequest } from "../../workflow/expressions/evaluate.ts";
import { readDefinition } from "../../workflow/validate.ts";
import type { ThreadRequest } from "./expression-thread.ts";

/** The thread that evaluates expressions and checks definitions, one at a time; see `expression-thread.ts`. */
parentPort?.on("message", (request: ThreadRequest) =>
  parentPort?.postMessage("definition" in request ? readDefinition(JSON.parse(request.definition)).problems : evaluateRequest(request)),
);
