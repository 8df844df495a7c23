import { ignore } from "../lib/failures.ts";
import type { EndedSpan } from "../station/telemetry/open-spans.ts";
import type { SpanSink } from "../station/telemetry/span-sink.ts";
import { createTelemetry, type Telemetry } from "../station/telemetry/telemetry.ts";

/** Maximum number of spans that wait for the packages to load. */
const WAITING_MAX = 2048;

/** Records spans immediately; the packages that send them load with the first span. */
export function composeTelemetry({ endpoint, version }: { endpoint: string; version: string }): Telemetry {
  const open = async () => (await import("../station/telemetry/span-sink.ts")).createSpanSink({ endpoint, version });
  return createTelemetry({ sink: lazySink(open) });
}

function lazySink(open: () => Promise<SpanSink>): SpanSink {
  let opening: Promise<SpanSink | null> | undefined;
  let sink: SpanSink | null = null;
  const waiting: EndedSpan[] = [];
  const load = async () => {
    sink = await open();
    for (const span of waiting.splice(0)) sink.export(span);
    return sink;
  };
  return {
    export(span) {
      if (sink !== null) return sink.export(span);
      if (waiting.length < WAITING_MAX) waiting.push(span);
      opening ??= ignore(load(), "without its packages there is no tracing").then((loaded) => loaded ?? null);
    },
    async [Symbol.asyncDispose]() {
      await (await opening)?.[Symbol.asyncDispose]();
    },
  };
}
