import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Client, connect } from "../client/connect.ts";
import { createRemoteStation } from "../client/remote/remote-station.ts";
import { goodData } from "../station/specs/testing-specs.ts";

const { base, server, token } = useServer();

async function clientOf(owner: string, scope: "read" | "run" | "admin" = "run"): Promise<Client> {
  return connect({ url: server().status.url, token: await token(scope, { owner }) });
}

/** Creates a scripted model that writes good phases, except for its first requirements, which are nonsense. */
async function model(): Promise<string> {
  const phase = (name: keyof typeof goodData, contains: string[] = []) => ({
    contains: [`Spec phase: ${name}`, ...contains],
    turns: [{ say: `I am a scripted model.\n\`\`\`json\n${JSON.stringify(goodData[name])}\n\`\`\`` }],
  });
  const script = {
    turns: [{ say: "I am a scripted model, and know nothing of this." }],
    tasks: [
      { contains: ["Spec phase: requirements (attempt 1)"], turns: [{ say: "I am done." }] },
      phase("requirements", ["What was wrong before"]),
      ...(["explore", "prd", "design", "tasks", "sync"] as const).map((name) => phase(name)),
    ],
  };
  await mkdir(base(), { recursive: true });
  const path = join(base(), "script.yaml");
  await writeFile(path, JSON.stringify(script));
  return `scripted:${path}`;
}

describe("specs over HTTP", () => {
  test("go from an idea to a plan, with a failed gate, approvals and events", { timeout: 120_000 }, async () => {
    const ada = await clientOf("ada", "admin");
    const draft = await ada.specs.create({
      idea: "Count words.",
      name: "words",
      source: { kind: "empty" },
      runs: { model: await model() },
    });
    expect(draft).toMatchObject({ owner: "ada", name: "words", status: "draft", phase: "explore", version: 0 });
    const execution = await ada.specs.execute("words", { until: "sync" });
    expect(execution).toMatchObject({ spec: draft.spec, run: expect.stringMatching(/^run_/) });
    expect(await ada.runs.get(execution.run ?? "")).toMatchObject({ owner: "ada", labels: { spec: draft.spec } });
    const view = await ada.specs.wait("words");
    expect(view).toMatchObject({ status: "waiting", asked: { phase: "requirements", version: 3 } });
    const attempts = view.attempts.filter(({ phase }) => phase === "requirements").map(({ judgement }) => judgement?.passed);
    expect(attempts).toEqual([false, true]);
    await expect(ada.specs.decide("words", { approved: true, version: 2 })).rejects.toMatchObject({ code: "stale" });
    await ada.specs.decide("words", { approved: true, version: 3 });
    expect(await ada.specs.wait("words")).toMatchObject({ asked: { phase: "design", version: 4 } });
    await ada.specs.decide("words", { approved: true });
    expect(await ada.specs.wait("words")).toMatchObject({ status: "planned", version: 6 });
    const seen: string[] = [];
    for await (const { type, seq } of ada.specs.events("words", { follow: true, signal: AbortSignal.timeout(30_000) })) {
      expect(seq).toBe(seen.length + 1);
      seen.push(type);
      if (type === "driven.ended") break;
    }
    expect(seen).toEqual(expect.arrayContaining(["spec.proposed", "spec.phase_judged", "spec.written", "spec.approved", "spec.concluded"]));
    // The same events without following, and page by page.
    const storedTypes: string[] = [];
    for await (const { type } of ada.specs.events("words")) storedTypes.push(type);
    expect(storedTypes).toEqual(seen);
    const headers = { authorization: `Bearer ${await token("read", { owner: "ada" })}` };
    const page = async (query: string) => {
      const answer = await fetch(`${server().status.url}/v1/specs/words/events${query}`, { headers });
      return (await answer.json()) as { events: { seq: number }[]; next: number | null };
    };
    const { events, next } = await page("?limit=2");
    expect([events.map(({ seq }) => seq), next]).toEqual([[1, 2], 3]);
    expect(await page(`?fromSeq=${seen.length}`)).toMatchObject({ events: [{ seq: seen.length, type: "driven.ended" }], next: null });
    expect(await ada.specs.list({ status: "planned" })).toMatchObject({
      items: [{ spec: draft.spec }],
      total: 1,
      totalIsMinimum: false,
      next: null,
    });
    expect((await ada.specs.export("words")).text).toContain("### REQ-001");
    const requirements = { requirements: goodData.requirements.requirements.slice(0, 1) };
    expect(await ada.specs.edit("words", { phase: "requirements", data: requirements })).toMatchObject({ version: 7 });
    expect((await ada.specs.diff("words", { from: 6 })).diff).toMatch(/^-### REQ-002/m);
    expect(await ada.specs.remove("words")).toMatchObject({ spec: draft.spec });
    expect((await ada.specs.list()).items).toEqual([]);
  });

  test("can only be seen and changed by their owner", async () => {
    const [ada, bob] = [await clientOf("ada"), await clientOf("bob")];
    const { spec } = await ada.specs.create({ idea: "Count words.", name: "words" });
    await bob.specs.create({ idea: "Count lines.", name: "words" });
    expect((await bob.specs.list()).items).toMatchObject([{ owner: "bob", title: "Count lines." }]);
    expect((await bob.specs.get("words")).title).toBe("Count lines.");
    const calls = [
      bob.specs.get(spec),
      bob.specs.get(spec.slice(0, 10)),
      bob.specs.execute(spec),
      bob.specs.decide(spec, { approved: true }),
      bob.specs.edit(spec, { phase: "explore", data: goodData.explore }),
      bob.specs.cancel(spec),
      bob.specs.wait(spec),
      bob.specs.diff(spec),
      bob.specs.export(spec),
      bob.specs.remove(spec),
    ];
    const outcomes = await Promise.allSettled(calls);
    const codes = outcomes.map((each) => (each.status === "rejected" ? (each.reason as { code?: string }).code : "done"));
    expect(codes).toEqual(calls.map(() => "not_found"));
    expect(await ada.specs.cancel("words")).toMatchObject({ status: "cancelled" });
    await ada.specs.remove("words");
    await bob.specs.remove("words");
  });

  test("need a project, and a token that may access it", async () => {
    const ada = await clientOf("ada");
    await expect(ada.specs.create({ idea: "x", source: { kind: "folder", path: "/srv" } })).rejects.toMatchObject({ code: "denied" });
    await expect(ada.specs.create({ idea: "x", runs: { planner: "/tmp/x.prompt" } })).rejects.toMatchObject({ code: "denied" });
    const others = { phaseAgents: { design: "/tmp/x.prompt" } };
    await expect(ada.specs.create({ idea: "x", runs: others })).rejects.toMatchObject({ code: "denied" });
    const { spec } = await ada.specs.create({ idea: "Count words." });
    await expect(ada.specs.execute(spec)).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("no project") });
    await expect(ada.specs.execute(spec, { source: { kind: "folder", path: "/srv" } })).rejects.toMatchObject({ code: "denied" });
    const reader = await clientOf("ada", "read");
    await expect(reader.specs.execute(spec)).rejects.toMatchObject({ code: "denied" });
    await ada.specs.remove(spec);
  });

  test("offer the same verbs through a remote station", async () => {
    const { specs } = createRemoteStation(await clientOf("ada"), { openPorts: {} as never });
    const { spec } = await specs.create({ idea: "Count words." });
    expect((await specs.get(spec)).status).toBe("draft");
    expect((await specs.export(spec, { format: "json" })).text).toContain('"idea": "Count words."');
    await expect(specs.wait(spec, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "cancelled" });
    await specs.remove(spec);
  });
});
