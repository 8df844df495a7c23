import { createCounter, createHistogram, type Family } from "./metrics.ts";
import type { AnsweredRequest } from "./observer.ts";

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Requests by the route's name and the class of their status: both are few, whatever callers ask for. */
export function createRequestMetrics(): { take(answered: AnsweredRequest): void; families(): Family[] } {
  const requests = createCounter("caisson_http_requests_total", "Requests that were answered, by route and class of status.");
  const seconds = createHistogram("caisson_http_request_seconds", "Until the answer began, by route; streams go on after that.", SECONDS);
  return {
    take({ route, status, durationMs }) {
      requests.add({ route, status: `${Math.floor(status / 100)}xx` });
      seconds.observe({ route }, durationMs / 1000);
    },
    families: () => [requests.family(), seconds.family()],
  };
}
