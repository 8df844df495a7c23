import { ignoring } from "../../lib/failures.ts";
import type { StationStatus } from "../../verbs/station-routes.ts";
import type { Arrival } from "../admit.ts";
import { checkOrigin, isLoopback, type StationNames } from "../gate.ts";
import { createHealth, type Health } from "./health.ts";
import { type Family, METRICS_TYPE, metricsText } from "./metrics.ts";
import { type AnsweredRequest, createObserver, type Observer, type RequestSpans } from "./observer.ts";
import { createRequestMetrics } from "./request-metrics.ts";
import { createStationMetrics, type WatchedStation } from "./station-metrics.ts";

/** What the process that starts a server observes. All of it is optional. */
export interface ObserveOptions {
  /** Checks whether the station can accept new work: the disk has room, and the log is writable. */
  isReady?: () => Promise<boolean>;
  spans?: RequestSpans;
  onRequest?: (answered: AnsweredRequest) => void;
  /** Metrics of this process besides requests. */
  families?: () => readonly Family[];
  /** Whether programs on the same machine may read the metrics without a token. */
  metricsWithoutToken?: boolean;
}

/** The observation of a server. */
export interface Observation extends Disposable {
  readonly observer: Observer;
  readonly health: Health;
  /** Whether this request may read the metrics without a token. */
  isOpenTo(request: { headers: Headers; arrival: Arrival }): boolean;
  /** Answers `/metrics`. */
  metrics(): Promise<Response>;
}

export function createObservation(options: {
  observe: ObserveOptions;
  /** The station with the things of all owners. */
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

/** Whether the request does not come from a page of another origin. */
function isOwnPage(request: Parameters<typeof checkOrigin>[0]): boolean {
  return ignoring("the check throws for another origin", () => checkOrigin(request) === undefined) ?? false;
}
