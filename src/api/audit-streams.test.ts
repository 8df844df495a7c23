import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { connect } from "../client/connect.ts";
import type { AuditEntry } from "../contract/audit/audit-verbs.ts";
import { CaissonError } from "../contract/error/error.ts";
import { callTool, mcpOverHttp } from "./mcp/testing-mcp.ts";
import { rawSocket, streamPrograms } from "./streams/testing-streams.ts";

const { station, token, ask, server, defects } = useServer({ programs: streamPrograms });

/** Returns audit entries, oldest first. */
async function entries(query = ""): Promise<AuditEntry[]> {
  return ((await (await ask(`/v1/audit${query}`)).json()) as { entries: AuditEntry[] }).entries.reverse();
}
const client = async () => connect({ url: server().status.url, token: await token("run") });

describe("a call over a WebSocket", () => {
  test("is audited: sandbox creation and removal, commands, terminals, connections", async () => {
    const { streams } = await client();
    const held = await streams.createHeld({ spec: { name: "box" } });
    const { id } = held.info;
    const listening = await streams.openProcess(id, { argv: ["echo-server", "secretargument"], env: { KEY: "secretvalue" } });
    const { value } = await listening.output[Symbol.asyncIterator]().next();
    (await streams.connectPort(id, Number(Buffer.from(value?.data ?? []).toString()))).reset();
    const terminal = await streams.openProcess(id, { argv: ["terminal"], pty: { cols: 80, rows: 24 }, ref: "mine" });
    terminal.detach();
    (await streams.attachProcess(id, "mine")).detach();
    await held.destroy();
    const all = await entries();
    expect(all.map(({ action, subject }) => ({ action, ...subject }))).toEqual([
      { action: "sandboxes.create", name: "box" },
      { action: "processes.start", sandbox: id, program: "echo-server" },
      { action: "ports.connect", sandbox: id, port: expect.any(String) },
      { action: "processes.start", sandbox: id, program: "terminal", process: "mine", terminal: "yes" },
      { action: "processes.attach", sandbox: id, process: "mine" },
      { action: "sandboxes.remove", sandbox: id },
    ]);
    expect(all.every(({ outcome, address, caller }) => outcome === "made" && address === "127.0.0.1" && caller?.startsWith("token "))).toBe(
      true,
    );
    expect(JSON.stringify(all)).not.toMatch(/secretargument|secretvalue/);
    expect((await entries(`?about=${id}&action=processes`)).length).toBe(3);
  });

  test("is audited when it fails or is denied, unless it only follows events", async () => {
    const as = await token("read");
    const events = rawSocket(server(), "/v1/stream", { as });
    await events.send({ type: "subscribe" });
    await events.message("subscribed");
    events.ws.close();
    await rawSocket(server(), "/v1/sandboxes/box/hold", { as }).closed;
    await rawSocket(server(), "/v1/sandboxes/box/hold", { as: await token("run") }).closed;
    await rawSocket(server(), "/v1/stream", { as: "tok_aaaaaaaaaaaa_wrongsecret" }).opened.catch(() => {});
    const all = await entries();
    expect(all).toMatchObject([
      { outcome: "failed", code: "denied", action: "sandboxes.hold", subject: { sandbox: "box" } },
      { outcome: "made", action: "sandboxes.hold" },
      { outcome: "failed", code: "not_found", action: "sandboxes.hold" },
      { outcome: "failed", code: "unauthenticated", action: "events.stream", caller: null },
    ]);
    expect(JSON.stringify(all)).not.toMatch(/wrongsecret/);
  });

  test("is refused when it cannot be audited", async () => {
    const { streams } = await client();
    const { recordCall } = station().audit;
    station().audit.recordCall = async () => {
      throw new CaissonError("no_space", "the disk is full");
    };
    try {
      await expect(streams.createHeld({ spec: {} })).rejects.toMatchObject({ code: "no_space" });
    } finally {
      station().audit.recordCall = recordCall;
    }
    expect((await station().sandboxes.list()).sandboxes).toEqual([]);
    expect(defects).toEqual([]);
  });
});

describe("an MCP tool call", () => {
  test("is audited when it changes something, with names but not text", async () => {
    const { client: mcp } = await mcpOverHttp(server().status.url, await token("run"));
    const { structuredContent } = await callTool(mcp, "create_sandbox", { name: "mine" });
    const sandbox = String(structuredContent?.sandbox);
    await callTool(mcp, "list_sandboxes");
    await callTool(mcp, "write_file", { sandbox: "mine", path: "/workspace/a.txt", text: "secretvalue" });
    await callTool(mcp, "exec", { sandbox, argv: ["cat", "secretargument"] });
    await callTool(mcp, "exec", { sandbox: "missing", command: "echo secretargument" });
    await mcp.close();
    const all = await entries();
    expect(all.map(({ action, outcome, code, subject }) => ({ action, outcome, code, ...subject }))).toEqual([
      { action: "mcp.create_sandbox", outcome: "made", code: null, name: "mine" },
      { action: "mcp.write_file", outcome: "made", code: null, sandbox: "mine", path: "/workspace/a.txt" },
      { action: "mcp.exec", outcome: "made", code: null, sandbox, program: "cat" },
      { action: "mcp.exec", outcome: "made", code: null, sandbox: "missing" },
      { action: "mcp.exec", outcome: "failed", code: "not_found" },
    ]);
    expect(all.every(({ caller, address }) => caller?.startsWith("token ") && address === "127.0.0.1")).toBe(true);
    expect(JSON.stringify(all)).not.toMatch(/secretargument|secretvalue/);
  });
});
