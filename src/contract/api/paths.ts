/**
 * Every call of the HTTP API by its name, with its method and path. Apart from what the calls take and give
 * (`routes.ts`), so that a client in a browser loads no schemas.
 */
export const paths = {
  "station.status": "GET /v1/status",
  "station.shutdown": "POST /v1/shutdown",
  "station.openapi": "GET /v1/openapi.json",
  "tokens.list": "GET /v1/tokens",
  "tokens.create": "POST /v1/tokens",
  "tokens.rotate": "POST /v1/tokens/{token}/rotate",
  "tokens.revoke": "DELETE /v1/tokens/{token}",
  "machine.doctor": "GET /v1/doctor",
  "agents.list": "GET /v1/agents",
  "sandboxes.create": "POST /v1/sandboxes",
  "sandboxes.list": "GET /v1/sandboxes",
  "sandboxes.get": "GET /v1/sandboxes/{sandbox}",
  "sandboxes.remove": "DELETE /v1/sandboxes/{sandbox}",
  "sandboxes.stats": "GET /v1/sandboxes/{sandbox}/stats",
  "sandboxes.pause": "POST /v1/sandboxes/{sandbox}/pause",
  "sandboxes.resume": "POST /v1/sandboxes/{sandbox}/resume",
  "sandboxes.fork": "POST /v1/sandboxes/{sandbox}/fork",
  "sandboxes.snapshot": "POST /v1/sandboxes/{sandbox}/snapshots",
  "sandboxes.exec": "POST /v1/sandboxes/{sandbox}/exec",
  "files.list": "GET /v1/sandboxes/{sandbox}/files",
  "files.remove": "DELETE /v1/sandboxes/{sandbox}/files",
  "files.read": "GET /v1/sandboxes/{sandbox}/files/content",
  "files.write": "PUT /v1/sandboxes/{sandbox}/files/content",
  "snapshots.list": "GET /v1/snapshots",
  "snapshots.remove": "DELETE /v1/snapshots/{snapshot}",
  "runs.start": "POST /v1/runs",
  "runs.list": "GET /v1/runs",
  "runs.get": "GET /v1/runs/{run}",
  "runs.events": "GET /v1/runs/{run}/events",
  "runs.send": "POST /v1/runs/{run}/messages",
  "runs.answer": "POST /v1/runs/{run}/answers",
  "runs.pause": "POST /v1/runs/{run}/pause",
  "runs.resume": "POST /v1/runs/{run}/resume",
  "runs.continue": "POST /v1/runs/{run}/continue",
  "runs.stop": "POST /v1/runs/{run}/stop",
  "runs.allEvents": "GET /v1/events",
  "sessions.list": "GET /v1/sessions",
  "sessions.get": "GET /v1/sessions/{session}",
  "sessions.diff": "GET /v1/sessions/{session}/diff",
  "sessions.patch": "GET /v1/sessions/{session}/patch",
  "sessions.apply": "POST /v1/sessions/{session}/apply",
  "sessions.branch": "POST /v1/sessions/{session}/branch",
  "sessions.unlock": "POST /v1/sessions/{session}/unlock",
  "sessions.discard": "DELETE /v1/sessions/{session}",
} as const satisfies Record<string, `${Method} /v1/${string}`>;

type Method = "GET" | "POST" | "PUT" | "DELETE";
export type RouteName = keyof typeof paths;

/** `POST` and `/v1/runs/{run}/stop` for `runs.stop`. */
export function pathOf(name: RouteName): { method: Method; path: string } {
  const [method, path] = paths[name].split(" ") as [Method, string];
  return { method, path };
}
