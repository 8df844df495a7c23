import type { IncomingMessage } from "node:http";
import { CaissonError } from "../../contract/error.ts";
import { askedModel, askedText, checkModel, estimatedInputTokens, outputBound } from "./asked.ts";
import type { CallDeadline } from "./call-deadline.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import { isObject, type JsonObject } from "./json-value.ts";
import { providerReach } from "./provider-reach.ts";
import { type BodyReader, type ReadBody, writeBody } from "./request-body.ts";
import type { Route } from "./routes.ts";

/** A request as it goes upstream, and what the gateway needs to know of it. */
export interface CallRequest extends Disposable {
  model: string;
  asked: string;
  /** Until it is disposed of, which lets go of the memory. */
  body: Buffer | null;
  inputEstimate: number;
  /** The most it may answer, by its own words. */
  outputMax: number | null;
  withoutUsageChunk: boolean;
}

/** A request without a body: a list of models, or one of them. Throws `denied`. */
export function callWithoutBody(route: Route, patterns: readonly string[] | undefined): CallRequest {
  const model = /^\/models\/(.+)$/.exec(route.path)?.[1] ?? "";
  if (model !== "") checkModel(route.wire, model, patterns);
  return { model, asked: "", body: null, inputEstimate: 0, outputMax: null, withoutUsageChunk: false, [Symbol.dispose]() {} };
}

interface ReadCallOptions {
  request: IncomingMessage;
  route: Route;
  bodies: BodyReader;
  deadline: CallDeadline;
  gateway: Pick<GatewayOptions, "spec" | "hostedTools">;
  heard: (call: { model: string; asked: string }) => void;
}

/** Reads and checks a request. Throws `invalid`, `denied`, `unsupported`, `too_large`, `busy`, `cancelled`. */
export async function readCall(options: ReadCallOptions): Promise<CallRequest> {
  const { request, deadline } = options;
  const stop = () => void request.destroy();
  deadline.signal.addEventListener("abort", stop, { once: true });
  try {
    const read = await options.bodies.read(request);
    try {
      return checkedCall(read, options);
    } catch (error) {
      read[Symbol.dispose]();
      throw error;
    }
  } finally {
    deadline.signal.removeEventListener("abort", stop);
    // What was not read is thrown away, so that the answer gets through and the connection can go on.
    request.resume();
  }
}

function checkedCall(read: ReadBody, options: ReadCallOptions): CallRequest {
  const { route, gateway } = options;
  const { body } = read;
  const model = askedModel(route, body, undefined);
  const asked = route.kind === "free" ? "" : askedText(body);
  options.heard({ model, asked });
  askedModel(route, body, gateway.spec.models);
  if (!gateway.hostedTools?.()) refuseReach(route, body);
  if (body.background === true) {
    throw new CaissonError("invalid", "answers that are fetched later cannot be metered", { hint: 'Leave "background" out.' });
  }
  const withoutUsageChunk = route.kind === "chat" && askForUsage(body);
  const call: CallRequest = {
    model,
    asked,
    body: writeBody(body),
    inputEstimate: route.kind === "free" ? 0 : estimatedInputTokens(body),
    outputMax: outputBound(body),
    withoutUsageChunk,
    [Symbol.dispose]() {
      call.body = null;
      read[Symbol.dispose]();
    },
  };
  return call;
}

function refuseReach(route: Route, body: JsonObject): void {
  const reach = providerReach(route, body);
  if (reach === null) return;
  throw new CaissonError(
    "denied",
    `${reach.path} is ${reach.what}: the provider may not reach out, run or look up things for this sandbox`,
    {
      hint: 'The network policy of the sandbox would not hold there. Leave it out; give content itself instead of a URL, a file or an earlier answer ("store": false).',
      details: { param: reach.path },
    },
  );
}

/** A stream of chat has its usage only when it is asked for. Says whether that was done here, for the gateway alone. */
function askForUsage(body: JsonObject): boolean {
  if (body.stream !== true) return false;
  const options = isObject(body.stream_options) ? body.stream_options : {};
  if (options.include_usage === true) return false;
  body.stream_options = { ...options, include_usage: true };
  return true;
}
