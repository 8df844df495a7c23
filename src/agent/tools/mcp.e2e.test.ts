import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { restricted } from "../../sandbox/sandbox.ts";
import { connectMcp, endEarlierServers, type McpConnection } from "./mcp.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

const script = join(import.meta.dirname, "../../../test/support/mcp-server-program.ts");

describe("MCP servers", () => {
  let bench: Workbench;
  let count = 0;
  beforeAll(async () => {
    bench = await createWorkbench({ real: true });
  });
  afterAll(() => bench[Symbol.asyncDispose]());
  const connect = (manner: string, options: { startMsMax?: number; command?: string } = {}) => {
    count += 1;
    return connectMcp({
      name: "my",
      server: { command: options.command ?? process.execPath, args: ["--no-warnings", script, manner], env: {} },
      sandbox: async () => restricted(bench.sandbox),
      run: "run_x",
      epoch: count,
      ...options,
    });
  };
  const call = async (connection: McpConnection, name: string, args: object = {}, options: object = {}) => {
    const tool = connection.tools.find((each) => each.name === name);
    if (!tool) throw new Error(`no tool ${name}`);
    return await bench.use(tool, args, options);
  };
  const servers = async () =>
    (await bench.sandbox.processes()).filter((each) => each.command.includes("mcp-server") && each.state === "running");

  test("offer their tools under names that every provider accepts", async () => {
    {
      await using my = await connect("well");
      expect(my.tools.map((tool) => tool.name)).toEqual(expect.arrayContaining(["my__add", "my__odd_name_x", "my__odd_name_x_2"]));
      const add = my.tools.find((tool) => tool.name === "my__add");
      expect(add?.jsonSchema).toMatchObject({ type: "object", properties: { a: { type: "number" } }, required: ["a", "b"] });
      expect(add?.subject({})).toBe("mcp:my:add");
      expect(my.tools.every((tool) => tool.description.length < 5000)).toBe(true);
      expect(await call(my, "my__add", { a: 2, b: 3 })).toEqual({ outcome: "ok", text: "5" });
      expect((await call(my, "my__odd_name_x_2")).text).toBe("even");
      expect(await call(my, "my__add", { a: "two" })).toMatchObject({ outcome: "error" });
      expect(await call(my, "my__fail")).toEqual({ outcome: "error", text: "it went wrong" });
      expect((await call(my, "my__picture")).text).toBe("[image image/png, 3 B; not shown]");
      expect((await call(my, "my__document")).text).toBe("[resource demo://one text/plain]\nits words\n[resource link demo://two (two)]");
      expect((await call(my, "my__long")).text.length).toBeLessThan(31_000);
      const abort = new AbortController();
      const waiting = call(my, "my__wait", {}, { signal: abort.signal });
      abort.abort();
      expect((await waiting).outcome).toBe("interrupted");
    }
    expect(await servers()).toEqual([]);
  });

  test("are restarted at the next call after they died", async () => {
    await using my = await connect("well");
    expect(await call(my, "my__die")).toMatchObject({ outcome: "error", text: expect.stringContaining("The MCP server my failed") });
    expect(await call(my, "my__add", { a: 1, b: 1 })).toEqual({ outcome: "ok", text: "2" });
  });

  test("survive garbage in their output, but end after an overlong line", async () => {
    await using my = await connect("garbage");
    expect((await call(my, "my__add", { a: 1, b: 2 })).text).toBe("3");
    expect(await call(my, "my__flood")).toMatchObject({ outcome: "error" });
    expect((await call(my, "my__add", { a: 1, b: 3 })).text).toBe("4");
  });

  test("are named in the error if they do not start or do not respond", async () => {
    await expect(connect("mute", { startMsMax: 300 })).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("my") });
    await expect(connect("well", { command: "/no/such/program" })).rejects.toMatchObject({ code: "invalid" });
    expect(await servers()).toEqual([]);
  });

  test("are quoted from standard error if they refuse to start", async () => {
    const message = expect.stringMatching(/my did not start: .*standard error:\n.*no such folder: \/nowhere/s);
    await expect(connect("refuse")).rejects.toMatchObject({ code: "invalid", message });
  });

  test("are ended only if they belong to an earlier holder", async () => {
    // Simulates a killed holder, which never closes its connection.
    const before = await connect("well");
    await using now = await connect("well");
    expect(await servers()).toHaveLength(2);
    await endEarlierServers(restricted(bench.sandbox), { run: "run_x", epoch: count });
    expect(await servers()).toHaveLength(1);
    expect((await call(now, "my__add", { a: 1, b: 2 })).text).toBe("3");
    await before[Symbol.asyncDispose]();
  });
});
