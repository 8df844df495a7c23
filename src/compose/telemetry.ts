import type { Log } from "../log/log.ts";
import type { Appended } from "../log/observed-log.ts";
import type { Telemetry } from "../station/telemetry/telemetry.ts";
import type { Variables } from "./environment.ts";

/** Events that wait for the packages to be loaded. */
const WAITING_MAX = 10_000;

export interface LazyTelemetry extends AsyncDisposable {
  appended(appended: Appended, log: Pick<Log, "read">): void;
  load(): Promise<Telemetry>;
}

/** Where traces go, by OpenTelemetry's own variables or the configuration; undefined: nowhere. */
export function traceEndpoint(variables: Variables, configured: string | undefined): string | undefined {
  if (variables.OTEL_SDK_DISABLED?.toLowerCase() === "true" || variables.OTEL_TRACES_EXPORTER === "none") return undefined;
  const given = variables.OTEL_EXPORTER_OTLP_ENDPOINT;
  return given === undefined || given === "" ? configured : given;
}

/** Loaded with the first event of a run or the first server. */
export function composeTelemetry({ endpoint, version }: { endpoint: string; version: string }): LazyTelemetry {
  let loading: Promise<Telemetry> | undefined;
  let loaded: Telemetry | null = null;
  const waiting: Parameters<LazyTelemetry["appended"]>[] = [];
  const open = async () => {
    const [{ createTelemetry }, { createSpanSink }] = await Promise.all([
      import("../station/telemetry/telemetry.ts"),
      import("../station/telemetry/span-sink.ts"),
    ]);
    loaded = createTelemetry({ sink: createSpanSink({ endpoint, version }) });
    for (const each of waiting.splice(0)) loaded.appended(...each);
    return loaded;
  };
  const load = () => {
    loading ??= open();
    return loading;
  };
  return {
    load,
    appended(...each) {
      if (loaded !== null) return loaded.appended(...each);
      if (waiting.length < WAITING_MAX) waiting.push(each);
      // Where the packages cannot be loaded there are no traces.
      void load().catch(() => {});
    },
    async [Symbol.asyncDispose]() {
      await (await loading?.catch(() => null))?.[Symbol.asyncDispose]();
    },
  };
}
