import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { auditName, auditOrigin, auditPath } from "../contract/audit/audit-text.ts";
import { callTool, mcpOverHttp } from "./mcp/testing-mcp.ts";
import { createStationLog } from "./observe/station-log.ts";

const { server, station, start, token, ask, post, base, defects } = useServer();

const CANARY = "Canary7f3a9";
/** Ways to put a password into a URL, well-formed or not. */
const addresses = [
  `https://user:${CANARY}@git.example.test/o/r.git`,
  `https://${CANARY}@git.example.test/o/r.git`,
  `https://user:p@${CANARY}@git.example.test/o/r.git`,
  `https://user:p/${CANARY}@git.example.test/o/r.git`,
  `https://git.example.test/o/r.git?token=${CANARY}`,
  `https://git.example.test/o/r.git#${CANARY}`,
  `http://user:${CANARY}@127.0.0.1:9/o/r.git`,
  `user:${CANARY}@git.example.test:o/r.git`,
  `user:${CANARY}@registry.example.test/o/r`,
  `https:\\\\user:${CANARY}@git.example.test/o/r.git`,
  ` https://user:${CANARY}@git.example.test/o/r.git`,
];

/** Every call that takes the address of something remote. */
const calls = (address: string): [path: string, body: unknown][] => [
  ["/v1/ships", { of: "nope", to: address, forge: "git" }],
  ["/v1/ships", { of: address }],
  ["/v1/webhooks", { name: "hook", url: address }],
  ["/v1/webhooks", { name: "hook", url: address, allowPrivate: true }],
  ["/v1/webhooks", { name: address, url: "https://hooks.example.test/" }],
  ["/v1/runs", { task: "x", model: "scripted:demo", source: { kind: "git", url: address } }],
  ["/v1/runs", { task: "x", model: "scripted:demo", agent: address }],
  ["/v1/runs", { task: "x", model: "scripted:demo", source: { kind: "git", url: "https://h.test/", submodulesFrom: [address] } }],
  ["/v1/runs", { task: "x", model: "scripted:demo", settings: { image: address } }],
  ["/v1/sandboxes", { spec: { template: { kind: "image", reference: address } } }],
  ["/v1/images", { name: "image", from: address }],
  ["/v1/specs", { idea: "x", source: { kind: "git", url: address } }],
  ["/v1/workflows", { definition: { name: "w", steps: [{ name: "a", kind: "set", data: {} }] }, source: { kind: "git", url: address } }],
  ["/v1/merges", { sessions: [address, address], agent: address }],
  ["/v1/machine/choose", { runtime: address }],
  [`/v1/ships/${encodeURIComponent(address)}/merge`, {}],
  [`/v1/webhooks/${encodeURIComponent(address)}/test`, {}],
  [`/v1/sandboxes/${encodeURIComponent(address)}/previews`, { port: 80 }],
  [`/v1/nowhere/${encodeURIComponent(address)}`, {}],
];

describe("a password in a URL", () => {
  test("never appears in the audit log, events, log lines or metrics", async () => {
    const lines: string[] = [];
    const log = createStationLog({ level: "trace", write: (line) => lines.push(line) });
    await server().close();
    await using watched = await start({}, { onRequest: log.request });
    const as = await token("admin");
    const headers = { authorization: `Bearer ${as}`, "content-type": "application/json" };
    for (const address of addresses)
      for (const [path, body] of calls(address)) {
        const answer = await fetch(`${watched.status.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
        await answer.text();
        await (await fetch(`${watched.status.url}${path}`, { method: "POST", body: "{}" })).text();
      }
    const { client } = await mcpOverHttp(watched.status.url, as);
    for (const address of addresses) {
      await callTool(client, "create_sandbox", { image: address, name: address });
      await callTool(client, "start_run", { task: "x", model: "scripted:demo", repository: address, agent: address });
      await callTool(client, "stop_run", { run: address });
    }
    await client.close();
    // Setup failures are retried later; waiting for the runs ensures that they are logged.
    for (const { run } of (await station().runs.list()).runs)
      await station()
        .runs.wait(run)
        .catch(() => undefined);
    for (const defect of defects) log.defect(defect);
    const figures = await (await fetch(`${watched.status.url}/metrics`, { headers })).text();
    const audit = await (await fetch(`${watched.status.url}/v1/audit?limit=1000`, { headers })).text();
    expect(audit).toContain("ships.start");
    expect(audit).toContain("https://git.example.test");
    const state = join(base(), "state");
    const stored = (await readdir(state)).filter((name) => /^(?:log|answers)\.db/.test(name));
    expect(stored).toContain("log.db");
    for (const name of stored) {
      const text = (await readFile(join(state, name))).toString("latin1");
      const found = text.indexOf(CANARY);
      expect(found < 0 ? "" : text.slice(Math.max(0, found - 200), found + 50), name).toBe("");
    }
    expect(`${audit}${figures}${lines.join("")}`).not.toContain(CANARY);
  });

  test("is shown only to the owner of the webhook", async () => {
    const url = `https://hooks.example.test/services/${CANARY}?token=${CANARY}`;
    const [bob, admin] = [await token("run", { owner: "bob" }), await token("admin")];
    const webhook = (await (await post("/v1/webhooks", { name: "hook", url }, { as: bob })).json()) as { id: string };
    expect(await (await ask(`/v1/webhooks/${webhook.id}`, { as: bob })).text()).toContain(CANARY);
    for (const as of [admin, undefined])
      for (const path of ["/v1/webhooks", `/v1/webhooks/${webhook.id}`]) {
        const text = await (await ask(path, as === undefined ? {} : { as })).text();
        expect(text).toContain("https://hooks.example.test/…");
        expect(text).not.toContain(CANARY);
      }
  });
});

describe("audit text", () => {
  test.each([
    ["https://user:secret@host.test:8443/a/b?c#d", "https://host.test:8443"],
    ["git@host.test:a/b.git", "ssh://host.test"],
    ["ssh://git@host.test/a", "ssh://host.test"],
    ["/srv/repository.git", "file://"],
    ["file:///srv/repository.git", "file://"],
    ["secret:x@host.test/a", "(unreadable)"],
    ["", "(unreadable)"],
  ])("reduces the address %s to %s", (address, text) => expect(auditOrigin(address)).toBe(text));

  test.each([
    ["nightly-build", "nightly-build"],
    ["/workspace/bin/tool", "/workspace/bin/tool"],
    ["sub:1.2", "sub:1.2"],
    ["user:secret@host", "(unreadable)"],
    ["https://host/secret", "(unreadable)"],
    ["a//b", "(unreadable)"],
  ])("reduces the name %s to %s", (name, text) => expect(auditName(name)).toBe(text));

  test("keeps only the beginning of an unknown path", () => {
    expect(auditPath("/v1/secrets/NAME/value")).toBe("/v1/secrets/…");
    expect(auditPath("/user:secret@host/x")).toBe("/(unreadable)/x");
  });
});
