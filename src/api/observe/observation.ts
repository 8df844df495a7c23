import type { StationStatus } from "../../contract/api/station-routes.ts";
import type { Arrival } from "../admit.ts";
import { checkOrigin, isLoopback, type StationNames } from "../gate.ts";
import { createHealth, type Health } from "./health.ts";
import { type Family, METRICS_TYPE, metricsText } from "./metrics.ts";
import { type AnsweredRequest, createObserver, type Observer, type RequestSpans } from "./observer.ts";
import { createRequestMetrics } from "./request-metrics.ts";
import { createStationMetrics, type WatchedStation } from "./station-metrics.ts";

/** What whoever starts a server wants to know of it; all of it may be left out. */
export interface ObserveOptions {
  /** Whether new work can be taken: the disk has room, the log can be written. */
  isReady?: () => Promise<boolean>;
  spans?: RequestSpans;
  onRequest?: (answered: AnsweredRequest) => void;
  /** Figures of what this process does besides requests. */
  families?: () => readonly Family[];
  /** Whether programs on the same machine read the figures without a token. */
  metricsWithoutToken?: boolean;
}

/** How a server is watched. */
export interface Observation extends Disposable {
  readonly observer: Observer;
  readonly health: Health;
  /** Whether this request may read the figures without a token. */
  isOpenTo(request: { headers: Headers; arrival: Arrival }): boolean;
  /** For `/metrics`. */
  metrics(): Promise<Response>;
}

export function createObservation(options: {
  observe: ObserveOptions;
  /** With everything in it. */
  station: WatchedStation;
  status: () => Pick<StationStatus, "requests" | "startedAt" | "load">;
  version: string;
  names: StationNames;
  isEnding: () => boolean;
  onDefect: (error: unknown) => void;
}): Observation {
  const { observe, onDefect } = options;
  const requests = createRequestMetrics();
  const station = createStationMetrics(options);
  const listeners = observe.onRequest === undefined ? [requests.take] : [requests.take, observe.onRequest];
  return {
    observer: createObserver({ listeners, onDefect, ...(observe.spans !== undefined && { spans: observe.spans }) }),
    health: createHealth({ isReady: observe.isReady ?? (async () => true), isEnding: options.isEnding }),
    isOpenTo: ({ headers, arrival }) =>
      observe.metricsWithoutToken === true &&
      arrival.via === "port" &&
      isLoopback(arrival.address) &&
      isOwnPage({ headers, via: arrival.via, names: options.names }),
    async metrics() {
      const families = [...(await station.families()), ...requests.families(), ...(observe.families?.() ?? [])];
      return new Response(metricsText(families), { headers: { "content-type": METRICS_TYPE, "cache-control": "no-store" } });
    },
    [Symbol.dispose]: () => station[Symbol.dispose](),
  };
}

/** Whether no page of somebody else's asks. */
function isOwnPage(request: Parameters<typeof checkOrigin>[0]): boolean {
  try {
    checkOrigin(request);
    return true;
  } catch {
    return false;
  }
}
