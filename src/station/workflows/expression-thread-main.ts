import { parentPort } from "node:worker_threads";
import { type EvaluationRequest, evaluateRequest } from "../../workflow/expressions/evaluate.ts";

/** The thread that evaluates expressions, one after the other; see `expression-thread.ts`. */
parentPort?.on("message", (request: EvaluationRequest) => parentPort?.postMessage(evaluateRequest(request)));
