import type { IncomingMessage } from "node:http";
import { CaissonError } from "../../contract/error/error.ts";
import type { CallDeadline } from "./call-deadline.ts";
import type { GatewayOptions } from "./gateway-options.ts";
import { isObject, type JsonObject } from "./json-value.ts";
import { providerReach } from "./provider-reach.ts";
import { askedModel, askedText, checkModel, estimatedInputTokens, outputBound } from "./read-model-request.ts";
import { type BodyReader, type ReadBody, writeBody } from "./request-body.ts";
import type { Route } from "./routes.ts";

/** A request as it goes upstream, and the facts that the gateway needs about it. */
export interface CallRequest extends Disposable {
  model: string;
  asked: string;
  /** The body to send, or null. Disposing of the request frees its memory. */
  body: Buffer | null;
  inputEstimate: number;
  /** The limit that the request itself sets on its output tokens, or null. */
  outputMax: number | null;
  withoutUsageChunk: boolean;
}

/** Returns a request without a body, for the list of models or one model. Throws `denied`. */
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
  gateway: Pick<GatewayOptions, "config" | "hostedTools">;
  noteWords: (call: { model: string; asked: string }) => void;
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
    // Discards the unread rest, so that the answer gets through and the connection stays usable.
    request.resume();
  }
}

function checkedCall(read: ReadBody, options: ReadCallOptions): CallRequest {
  const { route, gateway } = options;
  const { body } = read;
  const model = askedModel(route, body, undefined);
  const prompt = route.kind === "free" ? "" : askedText(body);
  options.noteWords({ model, asked: prompt });
  askedModel(route, body, gateway.config.models);
  if (!gateway.hostedTools?.()) refuseReach(route, body);
  if (body.background === true) {
    throw new CaissonError("invalid", "background responses cannot be metered", { hint: 'Leave out "background".' });
  }
  const withoutUsageChunk = route.kind === "chat" && askForUsage(body);
  const call: CallRequest = {
    model,
    asked: prompt,
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
    `${reach.path} is ${reach.what}: the provider must not fetch, run or look up anything for this sandbox`,
    {
      hint: 'The network policy of the sandbox does not apply there. Leave it out, and send content itself instead of a URL, a file or an earlier answer ("store": false).',
      details: { param: reach.path },
    },
  );
}

/**
 * Requests the usage of a streamed chat, which the upstream reports only on request. Returns true if the client had not
 * requested it.
 */
function askForUsage(body: JsonObject): boolean {
  if (body.stream !== true) return false;
  const options = isObject(body.stream_options) ? body.stream_options : {};
  if (options.include_usage === true) return false;
  body.stream_options = { ...options, include_usage: true };
  return true;
}
