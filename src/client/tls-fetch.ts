import { Agent, request } from "node:https";
import type { Fetch } from "./request.ts";
import { sendRequest } from "./socket-fetch.ts";

/** Implements `fetch` over HTTPS to a station whose certificate must chain to one of these, and not to the system's. */
export function tlsFetch({ ca }: { ca: string }): Fetch {
  const agent = new Agent({ ca, keepAlive: true });
  return (url, init) => sendRequest(init, (common) => request(url, { ...common, agent }));
}
