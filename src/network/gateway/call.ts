import type { IncomingMessage, ServerResponse } from "node:http";
import { CaissonError } from "../../contract/error/error.ts";
import { type AnswerMeter, createAnswerMeter } from "./answer-reader.ts";
import { type CallDeadline, createCallDeadline, orAborted } from "./call-deadline.ts";
import { type CallRequest, callWithoutBody, readCall } from "./call-request.ts";
import type { CallSlots } from "./call-slots.ts";
import type { GatewayLimits, GatewayOptions, GatewayUpstream } from "./gateway-options.ts";
import { createKeyRedactor, type KeyRedactor } from "./key-redactor.ts";
import type { Amount, Ledger, Reservation } from "./ledger.ts";
import { type UpstreamClient, upstreamUrl } from "./model-upstream.ts";
import { isStreamed, passAnswer, passModels, passRefusal } from "./pass-answer.ts";
import { upstreamHeaders } from "./passed-headers.ts";
import { recordCall } from "./record-call.ts";
import type { Recorder } from "./recorder.ts";
import type { BodyReader } from "./request-body.ts";
import type { Route } from "./routes.ts";
import { wireError } from "./wire-error.ts";

/** The parts that all calls of one gateway share. */
export interface CallSetting {
  options: GatewayOptions;
  limits: GatewayLimits;
  slots: CallSlots;
  bodies: BodyReader;
  ledger: Ledger;
  recorder: Recorder;
  client: UpstreamClient;
}

/** One call, filled in as it proceeds. */
export interface Call {
  setting: CallSetting;
  request: IncomingMessage;
  response: ServerResponse;
  route: Route;
  query: string;
  deadline: CallDeadline;
  startedMs: number;
  model: string;
  asked: string;
  redactor: KeyRedactor;
  reservation: Reservation | null;
  /** Set as soon as the whole request is sent, because from then on the call costs money. */
  sent: { atMs: number; asked: CallRequest } | null;
  /** True if the upstream refused the call or could not be reached, so nothing was used. */
  refused: boolean;
  meter: AnswerMeter | null;
  error: string | null;
}

/** Performs one call of a program inside, answers it and records it. Never rejects. */
export async function carryOut(options: {
  setting: CallSetting;
  request: IncomingMessage;
  response: ServerResponse;
  route: Route;
  query: string;
  closing: AbortSignal;
}): Promise<void> {
  const { closing, ...rest } = options;
  using deadline = createCallDeadline({ inAllMs: rest.setting.limits.callMs });
  const onHangUp = () => deadline.abort(new CaissonError("cancelled", "the program inside hung up before the end of the answer"));
  const stop = () => deadline.abort(new CaissonError("cancelled", "the gateway was closed"));
  // Ignores errors of writing to a client that has disconnected.
  rest.response.on("error", () => undefined);
  rest.response.once("close", () => {
    if (!rest.response.writableFinished) onHangUp();
  });
  closing.addEventListener("abort", stop, { once: true });
  const empty = { model: "", asked: "", reservation: null, sent: null, refused: false, meter: null, error: null };
  const call: Call = { ...rest, ...empty, redactor: createKeyRedactor(""), deadline, startedMs: Date.now() };
  try {
    await perform(call);
  } catch (error) {
    // If a side gave up, that is the reason to report, not the failure that it caused.
    const reason: unknown = deadline.signal.aborted ? deadline.signal.reason : error;
    call.error = whatFailed(reason);
    answerError(call, reason);
  } finally {
    closing.removeEventListener("abort", stop);
    recordCall(call);
  }
}

async function perform(call: Call): Promise<void> {
  const { setting, route, deadline } = call;
  const { options, limits } = setting;
  const upstream = upstreamFor(call);
  setting.recorder.check();
  if (route.kind !== "free") setting.ledger.check();
  using _slot = await setting.slots.take(deadline.signal);
  deadline.start(limits.requestMs, "the request took too long to arrive");
  const noteWords = (words: { model: string; asked: string }) => void Object.assign(call, words);
  const { bodies } = setting;
  using modelRequest =
    route.method === "GET"
      ? callWithoutBody(route, options.config.models)
      : await readCall({ request: call.request, route, bodies, deadline, gateway: options, noteWords });
  deadline.suspend();
  if (route.kind !== "free") call.reservation = await setting.ledger.reserve(amountOf(call, modelRequest), deadline.signal);
  deadline.start(limits.answerMs, `the model's server did not start to answer within ${limits.answerMs / 1000} s`);
  const answer = await ask(call, modelRequest, upstream);
  modelRequest[Symbol.dispose]();
  deadline.start(limits.stallMs, `no data moved for ${limits.stallMs / 1000} s`);
  await pass(call, modelRequest, answer);
}

/**
 * Returns the upstream of a call. Throws `not_found` for a wire that this gateway does not speak, `denied` if the host
 * has no key for it.
 */
function upstreamFor({ setting, route }: Call): GatewayUpstream {
  const { config, upstreams } = setting.options;
  if (!config.wires.includes(route.wire)) {
    throw new CaissonError("not_found", `this sandbox's gateway does not speak ${route.wire}; it speaks ${config.wires.join(", ")}`);
  }
  const upstream = upstreams[route.wire];
  if (upstream) return upstream;
  throw new CaissonError("denied", `the host has no key for ${route.wire}, so this endpoint is not available`, {
    hint: "Ask a person to set one outside the sandbox.",
  });
}

/** Estimates the most that a call may use. Throws `denied` for a model of unknown price if the cost is limited. */
function amountOf({ setting, route }: Call, modelRequest: CallRequest): Amount {
  const outputTokens = route.kind === "embeddings" ? 0 : (modelRequest.outputMax ?? setting.limits.outputTokensAssumed);
  const usage = {
    inputTokens: modelRequest.inputEstimate,
    outputTokens,
    cachedInputTokens: 0,
    reasoningTokens: 0,
    cacheWriteInputTokens: 0,
  };
  const costUsd = setting.options.prices(route.wire, modelRequest.model, usage);
  if (costUsd === null && setting.ledger.costIsBounded()) {
    throw new CaissonError("denied", `the price of ${modelRequest.model} is not known, so the cost limit cannot be enforced`, {
      hint: `Ask a person to add it on the host, as models.prices["${route.wire}/${modelRequest.model}"] in config.json, or to limit the tokens instead (--gateway-tokens).`,
      details: { openaiCode: "insufficient_quota" },
    });
  }
  return { costUsd: costUsd ?? 0, tokens: modelRequest.inputEstimate + outputTokens };
}

async function ask(call: Call, modelRequest: CallRequest, upstream: GatewayUpstream): Promise<IncomingMessage> {
  const { route, deadline, setting } = call;
  const key = await orAborted(upstream.key(), deadline.signal).catch((error: unknown) => {
    throw new CaissonError("unavailable", `the host could not get its key for ${route.wire}`, { cause: error });
  });
  call.redactor = createKeyRedactor(key.trim());
  const bodyBytes = modelRequest.body?.length ?? null;
  const headers = upstreamHeaders({ wire: route.wire, asked: call.request.headers, added: upstream.headers, key: key.trim(), bodyBytes });
  const url = upstreamUrl({ wire: route.wire, baseUrl: upstream.baseUrl, path: route.path, query: call.query });
  const noteSent = () => {
    call.sent = { atMs: Date.now(), asked: modelRequest };
  };
  try {
    return await setting.client.send({
      url,
      method: route.method,
      headers,
      body: modelRequest.body,
      signal: deadline.signal,
      onSent: noteSent,
    });
  } catch (error) {
    call.refused = !deadline.signal.aborted;
    throw error;
  }
}

async function pass(call: Call, modelRequest: CallRequest, answer: IncomingMessage): Promise<void> {
  const { setting, route, response, redactor, deadline } = call;
  const { options, limits } = setting;
  const passing = { wire: route.wire, answer, response, redactor, signal: deadline.signal };
  const status = answer.statusCode ?? 0;
  if (status >= 400) {
    call.refused = true;
    const text = await passRefusal({ ...passing, redact: options.redact, bytesMax: limits.refusalBytesMax });
    call.error = `The model's server answered ${status}: ${text}`;
    return;
  }
  const coding = answer.headers["content-encoding"] ?? "identity";
  if (status < 200 || status >= 300 || coding !== "identity") {
    answer.destroy();
    throw new CaissonError("protocol", `cannot pass on the answer of the model's server: status ${status}, encoding ${coding}`);
  }
  if (route.path === "/models" && options.config.models) {
    return await passModels({ ...passing, patterns: options.config.models, bytesMax: limits.answerBytesMax });
  }
  const streamed = isStreamed(answer);
  const withoutUsageChunk = modelRequest.withoutUsageChunk && streamed;
  call.meter = createAnswerMeter({ kind: route.kind, streamed, withoutUsageChunk, limits });
  await passAnswer({ ...passing, meter: call.meter, withoutUsageChunk, moved: deadline.extend });
}

function answerError(call: Call, error: unknown): void {
  const { response, route } = call;
  if (response.headersSent || response.destroyed) return;
  const { status, headers, body } = wireError(route.wire, error);
  response.writeHead(status, headers).end(call.setting.options.redact(call.redactor.text(body)));
}

/** Joins the messages of an error and its causes, for readers outside the sandbox. */
function whatFailed(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at instanceof Error && parts.length < 3; at = at.cause) parts.push(at.message);
  return parts.join(": ") || String(error);
}
