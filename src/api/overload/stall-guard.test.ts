import { once } from "node:events";
import { mkdtempDisposable } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { StationStatus } from "../../verbs/station-routes.ts";
import { createRequestIntake } from "./request-intake.ts";

const CONNECTIONS = 80;

test("accepts several connections in a turn of the event loop", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "caisson-guard-"));
  const [byPort, bySocket] = [createServer(), createServer()];
  byPort.listen(0, "127.0.0.1");
  bySocket.listen(join(folder.path, "s"));
  await Promise.all([once(byPort, "listening"), once(bySocket, "listening")]);
  const intake = createRequestIntake();
  await using _ = intake;
  await intake.guardStalls({ byPort, bySocket, certificate: null, status: () => ({}) as StationStatus });
  const { port } = byPort.address() as AddressInfo;
  let accepted = 0;
  byPort.on("connection", () => accepted++);
  /** Counts event-loop turns until all waiting connections are accepted. */
  const turnsToAccept = async () => {
    accepted = 0;
    const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, "127.0.0.1").on("error", () => {}));
    let turns = 0;
    for (; accepted < CONNECTIONS; turns++) await nextTurn();
    for (const socket of sockets) socket.destroy();
    return turns;
  };
  expect(await turnsToAccept()).toBeGreaterThan(CONNECTIONS / 2);
  await expect.poll(turnsToAccept).toBeLessThan(CONNECTIONS / 3);
  byPort.close();
  bySocket.close();
});
