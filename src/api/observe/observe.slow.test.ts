import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { JobKind } from "../../contract/durable/durable-kinds.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { goldenEvent, putThing } from "../testing-durable.ts";
import { createCounter, metricsText } from "./metrics.ts";
import type { AnsweredRequest } from "./observer.ts";
import { createRunMetrics } from "./run-metrics.ts";
import { poolFamilies } from "./station-metrics.ts";
import { parseMetrics } from "./testing-observe.ts";

const { ask, post, token, server, start, endedRun, base, station } = useServer();
const metricsOf = async (response: Response) => parseMetrics(await response.text());

describe("/healthz and /readyz", () => {
  test("answer anyone, and reveal only yes or no", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const response = await fetch(`${server().status.url}${path}`);
      expect([response.status, await response.text(), [...response.headers.keys()].includes("www-authenticate")]).toEqual([
        200,
        "ok\n",
        false,
      ]);
    }
    expect((await fetch(`${server().status.url}/healthz`, { method: "POST" })).status).toBe(401);
  });

  test("report not ready if the disk is full or cannot be checked", async () => {
    await server().close();
    let ready: () => Promise<boolean> = async () => false;
    await using again = await start({}, { isReady: () => ready() });
    expect((await fetch(`${again.status.url}/readyz`)).status).toBe(503);
    expect((await fetch(`${again.status.url}/healthz`)).status).toBe(200);
    ready = () => Promise.reject(new Error("no disk"));
    await expect.poll(async () => (await fetch(`${again.status.url}/readyz`)).status, { timeout: 60_000 }).toBe(503);
    ready = async () => true;
    await expect.poll(async () => (await fetch(`${again.status.url}/readyz`)).status, { timeout: 60_000 }).toBe(200);
  });
});

describe("/metrics", () => {
  test("has pool metrics only if sandboxes are kept ready", async () => {
    const text = metricsText(poolFamilies({ waiting: 1, size: 4, ready: 7, fresh: 2 }));
    expect(text).toContain("caisson_pool_waiting 1\n");
    expect(text).toContain("caisson_pool_size 4\n");
    expect(text).toContain('caisson_pool_given_total{how="ready"} 7\n');
    expect(text).toContain('caisson_pool_given_total{how="fresh"} 2\n');
    const families = await metricsOf(await ask("/metrics"));
    expect([...families.keys()].filter((name) => name.startsWith("caisson_pool"))).toEqual([]);
  });

  test("requires the scope read, and uses the Prometheus text format", async () => {
    expect((await fetch(`${server().status.url}/metrics`)).status).toBe(401);
    const as = await token("read");
    await post("/v1/sandboxes");
    await endedRun();
    await ask("/v1/runs", { as });
    await ask("/v1/nonsense/with/a/path", { as });
    await ask("/v1/tokens", { as });
    const response = await ask("/metrics", { as });
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const families = await metricsOf(response);
    const value = (name: string, labels: Record<string, string> = {}) =>
      families.get(name)?.samples.find((sample) => Object.entries(labels).every(([key, each]) => sample.labels[key] === each))?.value;
    expect(value("caisson_runs", { state: "ended" })).toBe(1);
    expect(value("caisson_sandboxes", { runtime: "fake", state: "running" })).toBe(1);
    expect(value("caisson_http_requests_total", { route: "runs.list", status: "2xx" })).toBe(1);
    expect(value("caisson_http_requests_total", { route: "none", status: "4xx" })).toBe(1);
    expect(value("caisson_http_requests_total", { route: "tokens.list", status: "4xx" })).toBe(1);
    expect(value("caisson_open_requests")).toBe(1);
    expect(value("caisson_queued_runs")).toBe(0);
    expect(value("caisson_at_work", { what: "runs" })).toBe(0);
    expect(value("caisson_at_work_max", { what: "sandboxes" })).toBeGreaterThan(0);
    expect(value("caisson_watched", { kind: "sandbox", level: "ok" })).toBe(1);
    expect(families.get("caisson_incidents")?.samples).toEqual([]);
    expect(value("caisson_memory_bytes", { kind: "resident" })).toBeGreaterThan(1_000_000);
    expect(families.get("caisson_http_request_seconds")?.type).toBe("histogram");
    expect((await metricsOf(await ask("/metrics"))).size).toBeGreaterThan(8);
  });

  test("follows the naming rules of the Prometheus linter", async () => {
    await post("/v1/sandboxes");
    const families = await metricsOf(await ask("/metrics"));
    for (const [name, { type, samples }] of families) {
      expect(name.endsWith("_total"), name).toBe(type === "counter");
      if (type !== "histogram") expect(name).not.toMatch(/_(?:count|sum|bucket)$/);
      expect(name).not.toMatch(/_(?:counter|gauge|histogram|milliseconds|minutes|hours|kilobytes|percent)(?:_|$)/);
      const labels = new Set(samples.flatMap((sample) => Object.keys(sample.labels)));
      expect(
        [...labels].filter((label) => label === "quantile" || (label === "le" && type !== "histogram")),
        name,
      ).toEqual([]);
    }
  });

  test("counts open durable jobs by kind and status", async () => {
    await using log = createSqliteLog({ path: join(base(), "state", "log.db") });
    const waits = { type: "driven.waiting", version: 1, data: { due: null, children: [], person: "Yes?", signal: null } };
    for (const kind of JobKind.options) {
      await putThing(log, kind, "ann", [waits]);
      await putThing(log, kind, "ben", [waits]);
      await putThing(log, kind, "ben", [goldenEvent("driven.ended.1")]);
    }
    const { samples = [] } = (await metricsOf(await ask("/metrics"))).get("caisson_driven") ?? {};
    expect(samples.map(({ labels: { kind, status }, value }) => `${kind} ${status} ${value}`).sort()).toEqual([
      "best waiting 2",
      "merge waiting 2",
      "ship working 2",
      "spec waiting 2",
      "workflow waiting 2",
    ]);
  });

  test("is open to local programs if configured, but never to web pages", async () => {
    await server().close();
    await using again = await start({}, { metricsWithoutToken: true });
    const ask = (headers: Record<string, string> = {}) => fetch(`${again.status.url}/metrics`, { headers });
    expect((await metricsOf(await ask())).size).toBeGreaterThan(8);
    expect((await ask({ origin: "http://evil.test" })).status).toBe(403);
    expect((await fetch(`${again.status.url}/v1/runs`)).status).toBe(401);
  });

  test("escapes labels and bounds their combinations", () => {
    const counter = createCounter("x_total", 'a "help"\nwith \\ in it');
    for (let index = 0; index < 5000; index++) counter.add({ label: `"${index}\n\\` });
    const families = parseMetrics(metricsText([counter.family()]));
    expect(families.get("x_total")?.samples).toHaveLength(1000);
    expect(families.get("x_total")?.samples[7]?.labels.label).toBe('"7\n\\');
  });

  test("is checked by a strict parser", () => {
    const good = '# HELP a_total h\n# TYPE a_total counter\na_total{b="c"} 1\n';
    expect(parseMetrics(good).size).toBe(1);
    const counter = "# HELP a_total h\n# TYPE a_total counter\n";
    for (const bad of [
      good.slice(0, -1),
      `${good}${good}`,
      `${good}a_total{b="c"} 2\n`,
      `${counter}b_total 1\n`,
      `${counter}a_total -1\n`,
      `${counter}a_total{b="c\n"} 1\n`,
      `${counter}a_total{b='c'} 1\n`,
      "# HELP a h\n# TYPE a counter\na 1\n",
      "a 1\n",
      '# HELP h h\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n',
      '# HELP h h\n# TYPE h histogram\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n',
    ]) {
      expect(() => parseMetrics(bad), bad).toThrow();
    }
  });

  test("counts model usage by known providers", () => {
    const { take, families } = createRunMetrics();
    const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };
    for (const [call, model] of [
      ["m1", "anthropic/claude"],
      ["m2", "evil\n{}/x"],
    ] as const) {
      const requested = { call, step: 1, attempt: 1, model, digest: "", messages: [], contextTokens: 0 };
      take("run_a", { type: "model.requested", data: requested });
      take("run_a", { type: "model.ended", data: { call, parts: [], usage, costUsd: 0.5, stop: "end", durationMs: 1 } });
    }
    const denied = {
      sandbox: "sb_aaaaaaaaaaaa",
      host: "x",
      port: 1,
      via: "http",
      reason: "no_network",
      method: null,
      path: null,
      text: "",
      count: 3,
    };
    take("run_a", { type: "network.denied", data: denied as never });
    const text = metricsText(families());
    parseMetrics(text);
    expect(text).toContain('caisson_model_tokens_total{provider="anthropic",kind="input"} 10\n');
    expect(text).toContain('caisson_model_cost_usd_total{provider="other"} 0.5\n');
    expect(text).toContain('caisson_egress_denied_total{reason="no_network"} 3\n');
  });
});

describe("an observed request", () => {
  test("has the caller's id if valid, and is logged without its content", async () => {
    await server().close();
    const seen: AnsweredRequest[] = [];
    await using again = await start({}, { onRequest: (answered) => void seen.push(answered) });
    const as = await token("run");
    const get = (headers: Record<string, string>) =>
      fetch(`${again.status.url}/v1/runs?cursor=secret`, { headers: { authorization: `Bearer ${as}`, ...headers } });
    expect((await get({ "x-request-id": "mine-1" })).headers.get("x-request-id")).toBe("mine-1");
    expect((await get({ "x-request-id": 'bad "id"' })).headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    await fetch(`${again.status.url}/v1/runs`);
    expect(seen.map(({ route, status, caller }) => [route, status, caller?.kind])).toEqual([
      ["runs.list", 400, "token"],
      ["runs.list", 400, "token"],
      ["runs.list", 401, undefined],
    ]);
    expect(JSON.stringify(seen)).not.toContain(as);
    expect(JSON.stringify(seen)).not.toContain("secret");
  });

  test("passes the caller's trace context to the run that it starts", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await writeFile(join(base(), "model.yaml"), "turns: [{ say: All done. }]\n");
    const request = { task: "Say so.", model: `scripted:${join(base(), "model.yaml")}` };
    const { run } = (await (await post("/v1/runs", request, { headers: { traceparent } })).json()) as { run: string };
    const page = (await (await ask(`/v1/runs/${run}/events?limit=1`)).json()) as { events: { data: object }[] };
    expect(page.events[0]?.data).toMatchObject({ traceparent });
    await station().runs.wait(run);
  });

  test("survives a listener that throws", async () => {
    await server().close();
    await using again = await start(
      {},
      {
        onRequest() {
          throw new Error("listener");
        },
      },
    );
    expect((await fetch(`${again.status.url}/healthz`)).status).toBe(200);
  });
});
