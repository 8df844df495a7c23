import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ForgeServer, startForgeServer } from "../../../test/support/forge-server.ts";
import { FLUSH, pktLine } from "../../workspace/git/wire/pkt-line.ts";
import { makeShipRig, type ShipRig } from "./testing-pull-requests.ts";

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
    // Exactly one merge of one commit, after the first commit.
    expect(server.repository.git("rev-list", "--count", "main")).toBe("3");
    expect(server.repository.git("for-each-ref", "--format=%(refname)", "refs/merge-requests")).toBe("");
    expect(server.pulls.all()).toHaveLength(kind === "git" ? 0 : 1);
    expect(JSON.stringify(rig.events)).not.toContain(TOKEN);
  };

  test("pushes, opens a request, checks, merges, and removes its branch", async () => {
    using rig = await rigFor();
    await rig.sail();
    expectMerged(rig);
  });

  test("leaves its request open until a merge is requested", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    expect(rig.state()).toMatchObject({ ended: null, failure: null, request: { id: expect.any(String) } });
    expect(server.repository.branch("fix/12-two-for-one")).toBe(rig.state().committed?.commit);
    rig.tell({ type: "ship.merge_asked", data: { by: "somebody" } });
    await rig.sail();
    expectMerged(rig);
  });

  test("takes another name if the branch exists with other commits", async () => {
    const theirs = server.repository.commit("fix/12-two-for-one", { "c.txt": "c\n" });
    using rig = await rigFor();
    await rig.sail();
    expect(rig.state().ended).toBe("completed");
    expect(rig.state().pushed?.branch).toBe("fix/12-two-for-one-2");
    expect(server.repository.branch("fix/12-two-for-one")).toBe(theirs);
  });

  test("merges with concurrent changes to other files", async () => {
    using rig = await rigFor();
    server.repository.commit("main", { "b.txt": "theirs\n" });
    await rig.sail();
    expect(rig.state().ended).toBe("completed");
    expect(server.repository.file("main", "a.txt")).toBe("two");
    expect(server.repository.file("main", "b.txt")).toBe("theirs");
  });

  test("never resolves a conflict, and continues after a person did", async () => {
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

  test("closes its request and keeps its branch when cancelled", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    rig.tell({ type: "driven.cancel_requested", data: { by: "somebody", text: "" } });
    await rig.sail();
    expect(rig.state().ended).toBe("cancelled");
    expect(server.repository.branches()).toEqual(["fix/12-two-for-one", "main"]);
    if (kind !== "git") expect(server.pulls.all()[0]?.state).toBe("closed");
    expect(server.repository.git("for-each-ref", "--format=%(refname)", "refs/merge-requests")).toBe("");
  });

  test("keeps a branch with commits that it did not push", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    server.repository.commit("fix/12-two-for-one", { "c.txt": "c\n" });
    rig.tell({ type: "ship.merge_asked", data: { by: "somebody" } });
    await rig.sail();
    // On a forge, the request contains the extra commit; without one, only the shipped commit is merged.
    if (kind !== "git") expect(rig.state().failure?.error.code).toBe("conflict");
    expect(server.repository.branches()).toContain("fix/12-two-for-one");
  });

  test.each([
    ["a refusal of the token", { kind: "status", status: 403 }, "denied"],
    ["a redirect", { kind: "status", status: 302, headers: { location: "http://127.0.0.1:1/" } }, "protocol"],
    ["an answer without end", { kind: "huge" }, "too_large"],
    ["an invalid answer", { kind: "lie", status: 200, body: "<html>", contentType: "text/html" }, "protocol"],
  ] as const)("stops at %s, and continues on request", async (_what, fault, code) => {
    using rig = await rigFor();
    server.faults.add(/info\/refs/, fault);
    await rig.sail();
    expect(rig.state().failure).toMatchObject({ nextAt: null, error: { code } });
    rig.tell({ type: "ship.resumed", data: { by: "somebody" } });
    await rig.sail();
    expectMerged(rig);
  });

  test("survives resets, errors, and pushes that succeed but report failure", async () => {
    using rig = await rigFor();
    server.faults.add(/info\/refs/, { kind: "reset" });
    server.faults.add(/info\/refs/, { kind: "status", status: 503 });
    server.faults.add(/POST .*git-receive-pack/, { kind: "after", status: 500 });
    await rig.sail();
    expectMerged(rig);
    expect(rig.events.filter(({ type }) => type === "ship.step_failed")).toHaveLength(3);
  });

  test("does not trust a push that only reports ok", async () => {
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
        data: expect.objectContaining({ error: expect.objectContaining({ message: expect.stringContaining("did not change") }) }),
      }),
    );
    expectMerged(rig);
  });

  test("gives up after a number of attempts and keeps the branch", async () => {
    using rig = await rigFor({ merge: false });
    await rig.sail();
    server.faults.add(/info\/refs/, { kind: "status", status: 500 }, 1000);
    rig.tell({ type: "ship.merge_asked", data: { by: "somebody" } });
    await rig.sail();
    expect(rig.state()).toMatchObject({ ended: null, failure: { nextAt: null, error: { code: "unavailable" } } });
    expect(server.repository.branch("fix/12-two-for-one")).not.toBeNull();
  });

  test("never sends its token to a host that the secret does not allow", async () => {
    using rig = await rigFor({
      target: { forge: kind, remote: server.remote.replace("127.0.0.1", "localhost"), token: "TOKEN", allowPrivate: true },
    });
    server.requests();
    await rig.sail();
    expect(rig.state().failure?.error.code).toBe("denied");
    expect(server.requests()).toEqual([]);
  });

  test("does not connect to a private address unless allowed", async () => {
    const target = { forge: kind, remote: server.remote.replace("http:", "https:"), token: "TOKEN", allowPrivate: false };
    using rig = await rigFor({ target });
    await rig.sail();
    expect(rig.state().failure?.error.code).toBe("denied");
    expect(server.requests()).toEqual([]);
  });

  test.skipIf(kind === "git")("waits as long as its forge asks", async () => {
    using rig = await rigFor();
    server.faults.add(/POST .*\/pulls$/, { kind: "status", status: 429, headers: { "retry-after": "120" } });
    await rig.sail();
    const failed = rig.events.find(({ type }) => type === "ship.step_failed");
    const { nextAt } = (failed?.data ?? {}) as { nextAt: string };
    expect(Date.parse(nextAt) - Date.parse(failed?.at ?? "")).toBe(120_000);
    expectMerged(rig);
  });

  test.skipIf(kind === "git")("finds requests and merges that succeeded although the forge reported errors", async () => {
    using rig = await rigFor();
    server.faults.add(/POST .*\/pulls$/, { kind: "after", status: 500 });
    server.faults.add(/\/merge$/, { kind: "after", status: 502 });
    await rig.sail();
    expectMerged(rig);
  });

  test.skipIf(kind === "git")("does not trust a merge that the repository does not contain", async () => {
    using rig = await rigFor();
    server.faults.add(/\/merge$/, { kind: "lie", status: 200, body: JSON.stringify({ merged: true, sha: "0".repeat(40) }) });
    await rig.sail();
    expect(rig.events.filter(({ type }) => type === "ship.step_failed")).toHaveLength(1);
    expectMerged(rig);
  });

  test.skipIf(kind === "git")("hides its token if the forge echoes it", async () => {
    using rig = await rigFor();
    server.faults.add(/POST .*\/pulls$/, { kind: "status", status: 422, body: JSON.stringify({ message: `what is ${TOKEN}?` }) });
    await rig.sail();
    expect(JSON.stringify(rig.events)).not.toContain(TOKEN);
    expect(rig.state().failure?.error.message).toContain("what is ***?");
  });
});
