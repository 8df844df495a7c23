import { type RunningServer, startServer } from "../api/server.ts";
import type { ServerControl } from "../cli/server-control.ts";
import { stationFolder } from "../contract/station-note.ts";
import { defined } from "../lib/defined.ts";
import { ignore } from "../lib/failures.ts";
import { sandboxOfToken } from "../sandbox/sandbox-token.ts";
import { createStore } from "../sandbox/store.ts";
import { openTurnMarker } from "../station/poison/turn-marker.ts";
import { boundedSandboxes } from "../station/queue/bounded-sandboxes.ts";
import { queueBounds } from "../station/queue/queue-bounds.ts";
import { ownedStation } from "../station/tenancy/owned-station.ts";
import { observeServer } from "./observe-server.ts";
import type { ServerParts } from "./server.ts";
import { startWork } from "./station-work.ts";

/** Runs the station of this state folder in this process. It listens first, and then continues existing work. */
export async function startStation(parts: ServerParts, options: Parameters<ServerControl["start"]>[0]): Promise<RunningServer> {
  const { station, stateDir } = parts;
  const store = createStore({ stateDir });
  const watched = observeServer({ ...parts, log: options.log });
  const onDefect = watched.log.defect;
  const runs = station.serve(queueBounds(parts.bounds));
  const bounded = { ...station, sandboxes: boundedSandboxes(station.sandboxes, { queue: runs.queue, store }) };
  const server = await startServer({
    ...options,
    observe: { ...watched.observe, ...defined({ spans: parts.spans ?? undefined }) },
    stationFor: (view) => ownedStation(bounded, view),
    runs,
    stateDir,
    consoleDir: parts.consoleDir,
    version: parts.version,
    settings: parts.settings,
    authenticate: (token) => station.tokens.authenticate(token),
    authenticateSandbox: (token) => sandboxOfToken(token, { folderOf: store.dir, nowMs: Date.now() }),
    audit: station.audit,
    guardsStalls: true,
    onDefect,
  });
  // Must come before any abandoned work is continued.
  const turns = await openTurnMarker(stationFolder(stateDir).folder);
  if (turns.poisoned !== null) await station.pausePoisoned(turns.poisoned).catch(onDefect);
  void runs.queue().catch(onDefect);
  void ignore(parts.warm(), "without a pool, each sandbox is created on request, and its caller gets the error");
  watched.log.say("the station is listening", { url: server.status.url, version: parts.version });
  void server.askedToEnd.then(() => watched.log.say("the station was asked to end"));
  return withWork(server, [startWork(station, { stateDir, onDefect }), turns]);
}

/** Ends the background work before the server. Starting the work is not awaited: the station listens first. */
function withWork(server: RunningServer, works: readonly AsyncDisposable[]): RunningServer {
  const close = async () => {
    for (const work of works) await work[Symbol.asyncDispose]();
    await server.close();
  };
  return {
    get status() {
      return server.status;
    },
    port: server.port,
    socketPath: server.socketPath,
    askedToEnd: server.askedToEnd,
    askedToEndAtOnce: server.askedToEndAtOnce,
    drained: () => server.drained(),
    close,
    [Symbol.asyncDispose]: close,
  };
}
