import { type SpanContext, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan } from "@opentelemetry/sdk-trace";
import { withoutTrailingSlashes } from "../../contract/trailing-slashes.ts";
import { ignore, ignoring } from "../../lib/failures.ts";
import type { EndedSpan } from "./open-spans.ts";

/** The most spans that may wait for the receiver; further spans are dropped. */
const QUEUE_MAX = 2048;
const BATCH_MAX = 256;
const DELAY_MS = 1000;
const EXPORT_MS = 5000;
/** How long an ending process waits to export its last spans. */
const FLUSH_MS = 2000;

/** A destination of spans. */
export interface SpanSink extends AsyncDisposable {
  /** Never throws and never waits. */
  export(span: EndedSpan): void;
}

const kinds = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT, server: SpanKind.SERVER } as const;

/**
 * Exports spans with OpenTelemetry's protocol over HTTP, in JSON. If the receiver does not respond, we lose spans and
 * nothing else.
 */
export function createSpanSink({ endpoint, version }: { endpoint: string; version: string }): SpanSink {
  const exporter = new OTLPTraceExporter({ url: `${withoutTrailingSlashes(endpoint)}/v1/traces`, timeoutMillis: EXPORT_MS });
  const processor = new BatchSpanProcessor({
    exporter,
    maxQueueSize: QUEUE_MAX,
    maxExportBatchSize: BATCH_MAX,
    scheduledDelayMillis: DELAY_MS,
    exportTimeoutMillis: EXPORT_MS,
  });
  const resource = resourceFromAttributes({ "service.name": "caisson", "service.version": version, "process.pid": process.pid });
  const context = (traceId: string, spanId: string): SpanContext => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED });
  const readable = (span: EndedSpan): ReadableSpan => ({
    name: span.name,
    kind: kinds[span.kind],
    spanContext: () => context(span.traceId, span.spanId),
    ...(span.parentSpanId !== null && { parentSpanContext: context(span.traceId, span.parentSpanId) }),
    startTime: hrTime(span.startMs),
    endTime: hrTime(span.endMs),
    duration: hrTime(span.endMs - span.startMs),
    status: span.error === null ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: span.error },
    attributes: span.attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: "caisson", version },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  });
  return {
    export(span) {
      ignoring("a trace must not fail the work it describes", () => processor.onEnd(readable(span)));
    },
    async [Symbol.asyncDispose]() {
      const timeout = Promise.withResolvers<void>();
      const timer = setTimeout(timeout.resolve, FLUSH_MS);
      await Promise.race([ignore(processor.shutdown(), "the collector may be down"), timeout.promise]);
      clearTimeout(timer);
    },
  };
}

function hrTime(ms: number): [number, number] {
  return [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)];
}
