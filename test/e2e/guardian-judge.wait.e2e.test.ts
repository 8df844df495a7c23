import { expect, test } from "vitest";
import { done, eventsOf, gate, guardedStations, long, ofGuardian, open, type Turn, until, write } from "../support/guarded-stations.ts";
import { type Reply, startModelServer } from "../support/model-server.ts";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const { newHome, serve, over, begin } = guardedStations(cli);

/** Starts a station whose guardian only asks a judge, which is a scripted server with OpenAI's protocol. */
async function serveJudged(name: string, reply: Reply) {
  const server = await startModelServer(() => reply);
  const judge = { model: "compatible/judge", everySteps: 1, callsMax: 1 };
  const home = await newHome(name, { repetitions: 1000, noProgressSteps: 10_000, errors: 1000, judge });
  return { server, served: await serve(home, { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "key-of-the-test" }) };
}
/** Each step makes some progress, so only a judge finds a problem. */
const sheep = (from: number, count: number): Turn[] => Array.from({ length: count }, (_, at) => write(`sheep-${from + at}.txt`));

test("a judge that finds drift causes a nudge, and is asked only a few times", long, async () => {
  const { server, served } = await serveJudged("judge", { say: '{"coherence": 0.1, "why": "it counts sheep"}' });
  try {
    const run = await begin(served, [...sheep(1, 8), gate("told"), ...sheep(20, 8), done]);
    expect((await until(served, run, "guardian.judged")).data).toMatchObject({ coherence: 0.1, text: "it counts sheep" });
    const { data: decided } = await until(served, run, "guardian.decided");
    expect(decided).toMatchObject({
      action: "nudge",
      findings: [{ detector: "drift", text: "the judge says 0.1: it counts sheep", events: [expect.any(Number)] }],
    });
    await open(served, run, "told");
    await open(served, run, "seen");
    await until(served, run, "run.ended");
    const judgmentCount = (await eventsOf(served, run)).filter(({ type }) => type === "guardian.judged").length;
    expect(judgmentCount).toBeGreaterThan(0);
    expect(judgmentCount).toBeLessThanOrEqual(3);
    expect(server.requests.length).toBeLessThanOrEqual(3);
    // The agent's actions are between marks, and the judge gets no tools.
    const [{ messages = [], tools = [] } = {}] = server.requests;
    expect([tools, JSON.stringify(messages[0])]).toEqual([[], expect.stringContaining("You judge whether an agent")]);
    expect(JSON.stringify(messages[1])).toMatch(/<[0-9a-f]{24}>[\s\S]*Make the parser's tests pass/);
    const explained = (await cli.run(["guardian", "explain", run], { home: served.home })).text;
    expect(explained).toMatch(/judge +asked 1 times, \$0\.\d{4}/);
  } finally {
    await over(served);
    await server[Symbol.asyncDispose]();
  }
});

test.each([
  ["that is broken", { status: 500 }],
  ["that talks nonsense", { say: "Stop that run at once, I am the judge." }],
] as [string, Reply][])("a judge %s does not affect the run", long, async (what, reply) => {
  const { server, served } = await serveJudged(`judge-${"status" in reply ? "broken" : "nonsense"}`, reply);
  try {
    const run = await begin(served, [...sheep(1, 8), gate("asked"), done]);
    await expect.poll(() => server.requests.length, { message: what, timeout: 200_000 }).toBeGreaterThan(0);
    await open(served, run, "asked");
    expect((await until(served, run, "run.ended")).data.reason).toBe("done");
    const seen = ofGuardian(await eventsOf(served, run));
    expect(seen.filter(({ type }) => type !== "guardian.judged")).toEqual([]);
    for (const event of seen) expect(event.data).toMatchObject({ coherence: null });
    expect((await cli.run(["guardian", "status", "--json"], { home: served.home })).text).toContain('"running":true');
  } finally {
    await over(served);
    await server[Symbol.asyncDispose]();
  }
});
