import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runStationAttacks } from "./run-station-attacks.ts";

test("a server that allows everything fails the claims", async () => {
  const stateDir = await mkdtemp(join(tmpdir(), "caisson-test-careless-"));
  const server = createServer((request, answer) => {
    request.resume();
    answer.writeHead(200, { "content-type": "application/json", "access-control-allow-origin": "*" });
    const { port } = server.address() as AddressInfo;
    answer.end(
      JSON.stringify({
        id: "x",
        run: "x",
        finish: "done",
        status: "completed",
        plainUrl: `http://127.0.0.1:${port}/`,
        all: "attack-owned",
      }),
    );
  });
  server.on("checkContinue", (_request, answer) => answer.writeHead(200).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const token = `tok_${"a".repeat(12)}_${"c".repeat(52)}`;
  await writeFile(join(stateDir, "log.db"), token, { mode: 0o644 });
  try {
    const { verdicts, holds } = await runStationAttacks(
      {
        url: `http://127.0.0.1:${port}`,
        stateDir,
        operatorSecret: "X",
        operatorValue: "value",
        token: async () => ({ id: "tok", token }),
        revoke: async () => undefined,
        code: async () => ({ code: "code", expiresAt: new Date().toISOString() }),
        tokenNames: async () => [],
        askStatus: async (url) => (await fetch(url)).text(),
      },
      {
        version: "test",
        only: ["O01", "O02", "O03", "M01", "M02", "T01", "C04", "K01", "K02", "K03", "K04", "B01", "B02", "P01", "L02", "L03"],
      },
    );
    expect(holds).toBe(false);
    const unbroken = verdicts.filter(({ verdict }) => verdict !== "failed");
    expect(unbroken.map(({ id, seen }) => `${id} ${seen}`)).toEqual([]);
    expect(verdicts).toHaveLength(16);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await rm(stateDir, { recursive: true, force: true });
  }
});
