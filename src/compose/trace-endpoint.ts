import type { Variables } from "./environment.ts";

/** Returns where to send traces, from OpenTelemetry's own variables or the configuration; undefined for nowhere. */
export function traceEndpoint(variables: Variables, configured: string | undefined): string | undefined {
  if (variables.OTEL_SDK_DISABLED?.toLowerCase() === "true" || variables.OTEL_TRACES_EXPORTER === "none") return undefined;
  const endpoint = variables.OTEL_EXPORTER_OTLP_ENDPOINT;
  return endpoint === undefined || endpoint === "" ? configured : endpoint;
}
