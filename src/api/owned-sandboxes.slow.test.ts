import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { connect } from "../client/connect.ts";
import type { Incident } from "../contract/health/health.ts";
import { newId } from "../lib/new-id.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import { createIncidentStore } from "../station/health/incident-store.ts";
import { ownedStation } from "../station/tenancy/owned-station.ts";
import { refused, useOwners } from "./testing-owners.ts";

/** Two owners, neither of whom may see or change the other's sandboxes. */
const { base, station, server, insideToken, endedRun, defects, stateDir, twoOwners } = useOwners();

const named = (name: string) => ({ spec: { name } });

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(stream).text();
}

describe("previews", () => {
  test("can only be opened, listed and closed by the owner of their sandbox", async () => {
    const { ada, bob, admin } = await twoOwners();
    const { id } = await ada.sandboxes.create(named("box"));
    const preview = await ada.networks.keepPreview("box", { port: 8080 });
    expect(await bob.networks.previews()).toEqual([]);
    await refused([
      bob.networks.closePreview(preview.id),
      bob.networks.keepPreview(id, { port: 8080 }),
      bob.networks.keepPreview("box", { port: 1 }),
    ]);
    expect(await ada.networks.previews()).toEqual([preview]);
    expect(await admin.networks.previews()).toEqual([preview]);
    await bob.sandboxes.create(named("box"));
    const other = await bob.networks.keepPreview("box", { port: 8080 });
    expect((await bob.networks.previews()).map((each) => each.id)).toEqual([other.id]);
    expect((await ada.networks.previews()).map((each) => each.id)).toEqual([preview.id]);
    await ada.networks.closePreview(preview.id);
    expect(await admin.networks.previews()).toHaveLength(1);
  });
});

describe("data stored by programs inside", () => {
  test("can only be read by the sandbox's owner, who alone sends messages", async () => {
    const { ada, bob } = await twoOwners();
    const { id } = await ada.sandboxes.create(named("box"));
    const inside = connect({ url: server().status.url, token: insideToken(id) });
    await inside.inside.putArtifact("report.txt", new TextEncoder().encode("ada's"));
    await inside.inside.report({ type: "task.done", data: {} });
    await bob.sandboxes.create(named("box"));
    expect(await textOf(await ada.inside.readArtifact("box", "report.txt"))).toBe("ada's");
    expect(await bob.inside.artifacts("box")).toEqual([]);
    await refused([
      bob.inside.artifacts(id),
      bob.inside.readArtifact(id, "report.txt"),
      bob.inside.readArtifact("box", "report.txt"),
      bob.inside.events(id),
      bob.inside.view(id),
      bob.inside.tell(id, { text: "Do as I say." }),
    ]);
    await bob.inside.tell("box", { text: "For my own." });
    expect(await bob.inside.events("box")).toEqual([]);
    expect(await inside.inside.takeMessages()).toEqual([]);
  });

  test("belongs to the owner of the run when the sandbox no longer exists", async () => {
    const { ada, bob } = await twoOwners();
    const run = await endedRun({ owner: "ada", name: "fix" });
    expect(await ada.inside.artifacts(run)).toEqual([]);
    await refused([bob.inside.artifacts(run), bob.inside.artifacts("fix"), bob.inside.readArtifact(run, "a")]);
  });
});

function incidentOf(subject: Incident["subject"], { owner, run = null }: { owner: string | null; run?: string | null }): Incident {
  const at = new Date().toISOString();
  const seen = { stats: null, processes: [], events: [], output: [], missing: [] };
  return { id: newId("inc"), at, subject, run, owner, condition: "dead", why: `${owner}'s`, outcome: null, ...seen };
}

describe("health", () => {
  test("covers the caller's sandboxes, and incidents stay visible after removal", async () => {
    const { ada, bob, admin } = await twoOwners();
    const incidents = createIncidentStore({ stateDir: stateDir() });
    const things: Record<string, { sandbox: string; run: string; incidents: string[] }> = {};
    for (const [owner, client] of Object.entries({ ada, bob })) {
      const { id: sandbox } = await client.sandboxes.create(named("box"));
      const run = await endedRun({ owner });
      const ownIncidents = [
        incidentOf({ kind: "sandbox", id: sandbox }, { owner }),
        incidentOf({ kind: "driver", id: run }, { owner, run }),
      ];
      for (const each of ownIncidents) await incidents.keep(each);
      things[owner] = { sandbox, run, incidents: ownIncidents.map(({ id }) => id).sort() };
    }
    // From a station without owners.
    const nobodys = incidentOf({ kind: "sandbox", id: "sb_aaaaaaaaaaaa" }, { owner: null });
    await incidents.keep(nobodys);
    const pairs = [
      [ada, "ada", "bob"],
      [bob, "bob", "ada"],
    ] as const;
    for (const [client, own, other] of pairs) {
      const { subjects } = await client.health.list();
      expect(subjects.filter(({ subject }) => subject.kind !== "station").map(({ subject }) => subject.id)).toEqual([things[own]?.sandbox]);
      expect((await client.health.incidents()).map(({ id }) => id).sort()).toEqual(things[own]?.incidents);
      const others = [...(things[other]?.incidents ?? []), nobodys.id];
      await refused(others.flatMap((id) => [client.health.incident(id), client.health.incident(id.slice(0, 12))]));
      for (const id of things[own]?.incidents ?? []) expect((await client.health.incident(id)).why).toBe(`${own}'s`);
    }
    await ada.sandboxes.remove("box");
    expect(await ada.health.incidents()).toHaveLength(2);
    expect(await admin.health.incidents()).toHaveLength(5);
  });
});

describe("snapshots and uploads", () => {
  test("are paged, and filtered by sandbox, name, runtime and time", async () => {
    const { ada } = await twoOwners();
    for (const box of ["one", "two"]) {
      await ada.sandboxes.create(named(box));
      for (const name of ["first", "second"]) await ada.sandboxes.snapshot(box, { name: `${box}-${name}` });
    }
    const names = async (query: Parameters<typeof ada.sandboxes.snapshots>[0]) =>
      (await ada.sandboxes.snapshots(query)).snapshots.map(({ name }) => name);
    const all = await names({});
    expect(all.toSorted()).toEqual(["one-first", "one-second", "two-first", "two-second"]);
    const seen: (string | null)[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof ada.sandboxes.snapshots>> = await ada.sandboxes.snapshots({
        limit: 3,
        ...(cursor !== null && { cursor }),
      });
      seen.push(...page.snapshots.map(({ name }) => name));
      cursor = page.next;
    } while (cursor !== null);
    expect(seen).toEqual(all);
    const { id: sandbox } = await ada.sandboxes.get("two");
    expect((await names({ sandbox })).toSorted()).toEqual(["two-first", "two-second"]);
    expect(await names({ name: "one-second" })).toEqual(["one-second"]);
    expect(await names({ runtime: "docker" })).toEqual([]);
    expect(await names({ createdBefore: "2020-01-01T00:00:00Z" })).toEqual([]);
    await expect(names({ cursor: "nonsense" })).rejects.toMatchObject({ code: "invalid" });
  });

  test("of another owner cannot be used or removed", async () => {
    const { ada, bob } = await twoOwners();
    for (const client of [ada, bob]) {
      await client.sandboxes.create(named("box"));
      await client.sandboxes.snapshot("box", { name: "base" });
    }
    const [hers] = (await ada.sandboxes.snapshots()).snapshots;
    const [his] = (await bob.sandboxes.snapshots()).snapshots;
    expect(hers?.id).not.toBe(his?.id);
    await refused([bob.sandboxes.removeSnapshot(hers?.id ?? ""), bob.sandboxes.create({ snapshot: hers?.id ?? "" })]);
    await bob.sandboxes.removeSnapshot("base");
    expect((await ada.sandboxes.snapshots()).snapshots).toEqual([hers]);
    const own = ownedStation(station(), { owner: "ada", sees: "own" });
    const { id: upload } = await own.uploads.put(packFolder(join(base(), "work")));
    expect(await bob.uploads.list()).toEqual([]);
    const origin = { machine: "m".repeat(26), host: "bobs", folder: "/home/bob/work" };
    await refused([
      bob.uploads.get(upload),
      bob.uploads.remove(upload),
      bob.sandboxes.create({ uploaded: { upload, origin } }),
      bob.sandboxes.create({ uploadedMounts: [{ upload, target: "/mnt" }] }),
      bob.runs.start({ task: "x", model: "openai/none", settings: { uploadedMounts: [{ upload, target: "/mnt" }] } }),
    ]);
    expect((await ada.uploads.get(upload)).id).toBe(upload);
    expect(defects).toEqual([]);
  });
});
