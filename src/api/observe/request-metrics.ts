import { createCounter, createHistogram, type Family } from "./metrics.ts";
import type { AnsweredRequest } from "./observer.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Counts requests by route name and status class, which are few, whatever callers send. */
export function createRequestMetrics(): { take(answered: AnsweredRequest): void; families(): Family[] } {
  const requests = createCounter("caisson_http_requests_total", "Answered requests, by route and status class.");
  const seconds = createHistogram(
    "caisson_http_request_seconds",
    "Time until the answer began, by route; streams continue after that.",
    SECONDS,
  );
  return {
    take({ route, status, durationMs }) {
      requests.add({ route, status: `${Math.floor(status / 100)}xx` });
      seconds.observe({ route }, durationMs / 1000);
    },
    families: () => [requests.family(), seconds.family()],
  };
}
