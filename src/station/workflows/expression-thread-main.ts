import { parentPort } from "node:worker_threads";
import { evaluateRequest } from "../../workflow/expressions/evaluate.ts";
import { readDefinition } from "../../workflow/validate.ts";
import type { ThreadRequest } from "./expression-thread.ts";

/** The thread that evaluates expressions and checks definitions, one after the other; see `expression-thread.ts`. */
parentPort?.on("message", (request: ThreadRequest) =>
  parentPort?.postMessage("definition" in request ? readDefinition(JSON.parse(request.definition)).problems : evaluateRequest(request)),
);
