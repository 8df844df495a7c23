import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ForgeServer, startForgeServer } from "../../../test/support/forge-server.ts";
import { FLUSH, pktLine } from "../../workspace/git/wire/pkt-line.ts";
import { makeShipRig, type ShipRig } from "./testing.ts";

const TOKEN = "canary-token-0123456789";
const files = { "a.txt": "one\n", "b.txt": "b\n" };

describe.each(["github", "gitea", "git"] as const)("a ship to %s", (kind) => {
  let folder: string;
  let server: ForgeServer;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "caisson-forge-"));
    server = await startForgeServer({ kind: kind === "github" ? "github" : "gitea", folder, token: TOKEN, files });
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  const rigFor = (more: Partial<Parameters<typeof makeShipRig>[0]> = {}) =>
    makeShipRig({
      target: { forge: kind, remote: server.remote, token: "TOKEN", allowPrivate: true },
      repository: server.repository,
      token: TOKEN,
      ...more,
    });
  const expectMerged = (rig: ShipRig) => {
    expect(rig.state().failure).toBeNull();
    expect(rig.state().ended).toBe("completed");
    expect(server.repository.branches()).toEqual(["main"]);
    expect(server.repository.file("main", "a.txt")).toBe("two");
    expect(rig.events.filter(({ type }) => type === "ship.merged")).toHaveLength(1);
    // One merge, of one commit, after the first.
    expect(server.repository.git("rev-list", "--count", "main")).toBe("3");
    expect(server.repository.git("for-each-ref", "--format=%(refname)", "refs/merge-requests")).toBe("");
    expect(server.pulls.all()).toHaveLength(kind === "git" ? 0 : 1);
    expect(JSON.stringify(rig.events)).not.toContain(TOKEN);
  };

  test("is pushed, requested, checked, merged, and its branch removed", async () => {
    using rig = await rigFor();
    await rig.sail();
    expectMerged(rig);
  });

  test("without being asked to merge, waits with its request open", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    expect(rig.state()).toMatchObject({ ended: null, failure: null, request: { id: expect.any(String) } });
    expect(server.repository.branch("fix/12-two-for-one")).toBe(rig.state().committed?.commit);
    rig.tell({ type: "ship.merge_asked", data: { by: "somebody" } });
    await rig.sail();
    expectMerged(rig);
  });

  test("steps aside for a branch of its name that is somebody else's", async () => {
    const theirs = server.repository.commit("fix/12-two-for-one", { "c.txt": "c\n" });
    using rig = await rigFor();
    await rig.sail();
    expect(rig.state().ended).toBe("completed");
    expect(rig.state().pushed?.branch).toBe("fix/12-two-for-one-2");
    expect(server.repository.branch("fix/12-two-for-one")).toBe(theirs);
  });

  test("is merged with what others did to other files meanwhile", async () => {
    using rig = await rigFor();
    server.repository.commit("main", { "b.txt": "theirs\n" });
    await rig.sail();
    expect(rig.state().ended).toBe("completed");
    expect(server.repository.file("main", "a.txt")).toBe("two");
    expect(server.repository.file("main", "b.txt")).toBe("theirs");
  });

  test("never resolves a conflict, and goes on when somebody did", async () => {
    using rig = await rigFor();
    const theirs = server.repository.commit("main", { "a.txt": "three\n" });
    await rig.sail();
    expect(rig.state()).toMatchObject({ ended: null, failure: { nextAt: null, error: { code: "conflict" } } });
    expect(server.repository.branch("main")).toBe(theirs);
    expect(server.repository.branch("fix/12-two-for-one")).not.toBeNull();
    server.repository.commit("main", { "a.txt": "one\n" });
    rig.tell({ type: "ship.resumed", data: { by: "somebody" } });
    await rig.sail();
    expect(rig.state().ended).toBe("completed");
  });

  test("that is cancelled closes its request and keeps its branch", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    rig.tell({ type: "driven.cancel_requested", data: { by: "somebody", text: "" } });
    await rig.sail();
    expect(rig.state().ended).toBe("cancelled");
    expect(server.repository.branches()).toEqual(["fix/12-two-for-one", "main"]);
    if (kind !== "git") expect(server.pulls.all()[0]?.state).toBe("closed");
    expect(server.repository.git("for-each-ref", "--format=%(refname)", "refs/merge-requests")).toBe("");
  });

  test("keeps a branch to which somebody pushed more", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    server.repository.commit("fix/12-two-for-one", { "c.txt": "c\n" });
    rig.tell({ type: "ship.merge_asked", data: { by: "somebody" } });
    await rig.sail();
    // Of a forge, the request brings more than was shipped; without one, what was shipped is merged.
    if (kind !== "git") expect(rig.state().failure?.error.code).toBe("conflict");
    expect(server.repository.branches()).toContain("fix/12-two-for-one");
  });

  test.each([
    ["a refusal of the token", { kind: "status", status: 403 }, "denied"],
    ["a redirect", { kind: "status", status: 302, headers: { location: "http://127.0.0.1:1/" } }, "protocol"],
    ["an answer without end", { kind: "huge" }, "too_large"],
    ["an answer that is none", { kind: "lie", status: 200, body: "<html>", contentType: "text/html" }, "protocol"],
  ] as const)("stops at %s, and goes on when asked to", async (_what, fault, code) => {
    using rig = await rigFor();
    server.faults.add(/info\/refs/, fault);
    await rig.sail();
    expect(rig.state().failure).toMatchObject({ nextAt: null, error: { code } });
    rig.tell({ type: "ship.resumed", data: { by: "somebody" } });
    await rig.sail();
    expectMerged(rig);
  });

  test("is tried again after resets, errors, and pushes that arrived although the remote says otherwise", async () => {
    using rig = await rigFor();
    server.faults.add(/info\/refs/, { kind: "reset" });
    server.faults.add(/info\/refs/, { kind: "status", status: 503 });
    server.faults.add(/POST .*git-receive-pack/, { kind: "after", status: 500 });
    await rig.sail();
    expectMerged(rig);
    expect(rig.events.filter(({ type }) => type === "ship.step_failed")).toHaveLength(3);
  });

  test("does not believe a push that only says ok", async () => {
    using rig = await rigFor();
    const report = Buffer.concat([pktLine("unpack ok\n"), pktLine("ok refs/heads/fix/12-two-for-one\n"), FLUSH]).toString();
    server.faults.add(/POST .*git-receive-pack/, {
      kind: "lie",
      status: 200,
      body: report,
      contentType: "application/x-git-receive-pack-result",
    });
    await rig.sail();
    expect(rig.events).toContainEqual(
      expect.objectContaining({
        data: expect.objectContaining({ error: expect.objectContaining({ message: expect.stringContaining("does not have it") }) }),
      }),
    );
    expectMerged(rig);
  });

  test("gives up after so many attempts, with the branch kept", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    server.faults.add(/info\/refs/, { kind: "status", status: 500 }, 1000);
    rig.tell({ type: "ship.merge_asked", data: { by: "somebody" } });
    await rig.sail();
    expect(rig.state()).toMatchObject({ ended: null, failure: { nextAt: null, error: { code: "unavailable" } } });
    expect(server.repository.branch("fix/12-two-for-one")).not.toBeNull();
  });

  test("never sends its token where it is not for", async () => {
    using rig = await rigFor({
      target: { forge: kind, remote: server.remote.replace("127.0.0.1", "localhost"), token: "TOKEN", allowPrivate: true },
    });
    server.requests();
    await rig.sail();
    expect(rig.state().failure?.error.code).toBe("denied");
    expect(server.requests()).toEqual([]);
  });

  test("does not go to a private address unless it may", async () => {
    const target = { forge: kind, remote: server.remote.replace("http:", "https:"), token: "TOKEN", allowPrivate: false };
    using rig = await rigFor({ target });
    await rig.sail();
    expect(rig.state().failure?.error.code).toBe("denied");
    expect(server.requests()).toEqual([]);
  });

  test.skipIf(kind === "git")("waits as long as its forge asks for", async () => {
    using rig = await rigFor();
    server.faults.add(/POST .*\/pulls$/, { kind: "status", status: 429, headers: { "retry-after": "120" } });
    await rig.sail();
    const failed = rig.events.find(({ type }) => type === "ship.step_failed");
    const { nextAt } = (failed?.data ?? {}) as { nextAt: string };
    expect(Date.parse(nextAt) - Date.parse(failed?.at ?? "")).toBe(120_000);
    expectMerged(rig);
  });

  test.skipIf(kind === "git")("finds a request that was opened, and a merge that was done, although its forge says otherwise", async () => {
    using rig = await rigFor();
    server.faults.add(/POST .*\/pulls$/, { kind: "after", status: 500 });
    server.faults.add(/\/merge$/, { kind: "after", status: 502 });
    await rig.sail();
    expectMerged(rig);
  });

  test.skipIf(kind === "git")("does not believe a merge that was not done", async () => {
    using rig = await rigFor();
    server.faults.add(/\/merge$/, { kind: "lie", status: 200, body: JSON.stringify({ merged: true, sha: "0".repeat(40) }) });
    await rig.sail();
    expect(rig.events.filter(({ type }) => type === "ship.step_failed")).toHaveLength(1);
    expectMerged(rig);
  });

  test.skipIf(kind === "git")("says nothing of its token when its forge says it back", async () => {
    using rig = await rigFor();
    server.faults.add(/POST .*\/pulls$/, { kind: "status", status: 422, body: JSON.stringify({ message: `what is ${TOKEN}?` }) });
    await rig.sail();
    expect(JSON.stringify(rig.events)).not.toContain(TOKEN);
    expect(rig.state().failure?.error.message).toContain("what is ***?");
  });
});
