import type { Variables } from "./environment.ts";

/** Where traces go, by OpenTelemetry's own variables or the configuration; undefined: nowhere. */
export function traceEndpoint(variables: Variables, configured: string | undefined): string | undefined {
  if (variables.OTEL_SDK_DISABLED?.toLowerCase() === "true" || variables.OTEL_TRACES_EXPORTER === "none") return undefined;
  const given = variables.OTEL_EXPORTER_OTLP_ENDPOINT;
  return given === undefined || given === "" ? configured : given;
}
