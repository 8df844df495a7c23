import { meteredUsage } from "./answer-reader.ts";
import type { Call } from "./call.ts";
import type { GatewayUsage } from "./gateway-options.ts";

const TEXT_MAX = 16_384;
const ERROR_MAX = 2000;
const MODEL_MAX = 200;

const nothing: GatewayUsage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0, cacheWriteInputTokens: 0 };

/** Meters a call and passes its event to the recorder, with every secret redacted. */
export function recordCall(call: Call): void {
  const { setting, route, response } = call;
  const { usage, estimated } = usageOf(call);
  const isFree = call.sent === null || call.refused || route.kind === "free";
  const costUsd = isFree ? 0 : setting.options.prices(route.wire, call.model, usage);
  call.reservation?.settle({ costUsd: costUsd ?? 0, tokens: usage.inputTokens + usage.outputTokens });
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage;
  const clean = (text: string, max: number) => setting.options.redact(call.redactor.text(text)).slice(0, max).toWellFormed();
  const error = errorOf(call, estimated);
  setting.recorder.record(
    {
      type: "gateway.called",
      data: {
        wire: route.wire,
        model: clean(call.model, MODEL_MAX),
        path: `/${route.wire}/v1${route.path}`,
        // The status that proxies log if the client disconnected before the answer.
        status: response.headersSent ? response.statusCode : 499,
        usage: { inputTokens, outputTokens, cachedInputTokens, reasoningTokens },
        costUsd,
        durationMs: Date.now() - call.startedMs,
        asked: clean(call.asked, TEXT_MAX),
        answered: clean(call.meter?.reading.text ?? "", TEXT_MAX),
        error: error === null ? null : clean(error, ERROR_MAX),
      },
    },
    { free: isFree },
  );
}

function usageOf(call: Call): { usage: GatewayUsage; estimated: boolean } {
  const { sent, refused, meter, route } = call;
  if (sent === null || refused) return { usage: nothing, estimated: false };
  const { inputEstimate, outputMax } = sent.asked;
  const workedMs = Date.now() - sent.atMs;
  return meteredUsage({ kind: route.kind, reading: meter?.reading ?? null, inputEstimate, outputMax, workedMs });
}

function errorOf(call: Call, estimated: boolean): string | null {
  const message = call.error ?? call.meter?.reading.error ?? null;
  if (!estimated) return message;
  return `${message ?? "the answer did not report its usage"}; its tokens are estimated`;
}
