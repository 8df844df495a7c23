import { Agent, request } from "node:https";
import type { Fetch } from "./request.ts";
import { sent } from "./socket-fetch.ts";

/** `fetch` by HTTPS to a station whose certificate leads to one of these, and not to the system's. */
export function tlsFetch({ ca }: { ca: string }): Fetch {
  const agent = new Agent({ ca, keepAlive: true });
  return (url, init) => sent(init, (common) => request(url, { ...common, agent }));
}
